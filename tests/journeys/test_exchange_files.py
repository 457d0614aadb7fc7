"""Agents that no network connects: by files alone they come to the pages of one agent, and bad files change nothing."""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.journeys.test_agents import HOSTS, PAGES, options_for, seed_of, urls_in, web_of_hosts

from gossamer.agents.handing_over import forget_note
from gossamer.agents.merging import REFUSED
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.analysis.verifying import verify
from gossamer.analysis.why import story_of
from gossamer.cli.main import main
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.resting import checkpoint, restore
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.storage.mailbox.exchange_files import IN
from gossamer.storage.mailbox.sealed_files import EXCHANGE_KEY, UrlFileWriter, new_header, proved, read_key
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.task import Task
from gossamer.values.url import host_of

AGENTS = 3


def begun(web: FakeWeb, folder: Path, number: int, seeds: int = 1, **more: object) -> Summary:
    """The first run of one agent, from the first page of so many hosts."""
    who: dict[str, object] = {"agents": AGENTS} if number == 1 else {"exchange_key": str(folder / "1" / EXCHANGE_KEY)}
    options = options_for(web, folder / str(number), exchange="files", agent=number, **who, **more)
    start = [web.url(f"http://www.h{host}.test/p0") for host in range(seeds)]
    return run(Crawl(start, options, tables=False))


def gone_on(folder: Path) -> Summary:
    options = build(all_options(), {"output": str(folder), "resume": True})
    return run(Crawl([], options, tables=False))


def exchanged(folder: Path, number: int) -> None:
    """Take all files that are for an agent to it, as a person with a stick would."""
    found = [str(path) for path in sorted(folder.glob(f"*/exchange/out/*-to-agent-0{number}-*.urls"))]
    if found:
        assert main(["merge", str(folder / str(number)), *found, found[0]]) == 0


def test_disconnected_agents_fetch_the_pages_that_one_fetches_and_tell_both_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with web_of_hosts() as web:
        run(Crawl([seed_of(web)], options_for(web, tmp_path / "alone"), tables=False))
        asked = Counter(web.targets())
        web.requests.clear()
        folder = tmp_path / "agents"
        summaries = {number: begun(web, folder, number) for number in range(1, AGENTS + 1)}
        assert all(one.state == "finished" and one.exit_code == 0 for one in summaries.values())
        assert (folder / "1" / EXCHANGE_KEY).read_bytes() == (folder / "2" / EXCHANGE_KEY).read_bytes()
        ring = RingDesignation(RingSheet(members=read_key(folder / "1" / EXCHANGE_KEY).members))
        first = int(ring.owner(host_of(seed_of(web)))[-1])
        standing = standing_at_rest(folder / str(first)).exchange
        assert standing is not None
        assert standing.written > 0, "what one agent found is in files"
        start = host_of(seed_of(web))
        seen = (web.url(f"http://www.h{host}.test/p0") for host in range(HOSTS))
        owed = next(
            url for url in seen if ring.owner(host_of(url)) != ring.owner(start) and is_owed(folder / str(first), url)
        )
        told = story_of(folder / str(first), owed)
        assert told.state == "owed"
        assert "has not confirmed yet" in told.told
        for _ in range(12):
            before = [one.pages for one in summaries.values()]
            for number in summaries:
                exchanged(folder, number)
                summaries[number] = gone_on(folder / str(number))
            if before == [one.pages for one in summaries.values()]:
                break
        assert sum(one.pages for one in summaries.values()) == HOSTS * PAGES
        assert Counter(web.targets()) == asked, "each page and each robots.txt is asked for once, by one agent"
    found = [urls_in(folder / str(number) / "logs/crawl.jsonl") for number in summaries]
    assert sum(found, Counter()) == urls_in(tmp_path / "alone/logs/crawl.jsonl")
    assert all(found), "each agent had a part"
    there = standing_at_rest(folder / str(first)).exchange
    assert there is not None
    assert (there.owed, there.written) == (0, 0), "everything was confirmed"
    assert "has confirmed that it has it" in story_of(folder / str(first), owed).told
    other = int(ring.owner(host_of(owed))[-1])
    assert story_of(folder / str(other), owed).found_by == f"agent-0{first}"
    assert verify(folder / "2", deep=True).findings == []
    assert main(["status", str(folder / "2")]) == 0
    assert "agent-02 of 3, 0 URLs owed, 0 written" in capsys.readouterr().out


def test_an_agent_whose_directory_is_lost_is_sent_everything_again(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, crawl = file_for(pair)
    sender = pair / path.stem.split("-")[2].lstrip("0")
    assert main(["merge", str(crawl), str(path)]) == 0
    urls = {task.url for task in proved(path, read_key(crawl / EXCHANGE_KEY), f"agent-0{crawl.name}").tasks()}
    assert main(["exchange", str(crawl)]) == 0
    back = str(max((crawl / "exchange/out").glob(f"*-to-agent-0{sender.name}-*"), key=lambda one: one.stat().st_mtime))
    assert main(["merge", str(sender), back]) == 0
    assert not path.exists(), "it is confirmed, and forgotten"
    shutil.rmtree(crawl)
    assert main(["exchange", str(sender), "--lost", crawl.name]) == 0
    [again] = (sender / "exchange/out").glob(f"*-to-agent-0{crawl.name}-*")
    found = {task.url for task in proved(again, read_key(sender / EXCHANGE_KEY), f"agent-0{crawl.name}").tasks()}
    assert urls - seeds_of(sender)
    assert found >= urls - seeds_of(sender)
    capsys.readouterr()
    assert main(["exchange", str(sender), "--lost", "9"]) == 2
    assert "the other agents of this exchange are" in capsys.readouterr().err


def seeds_of(crawl: Path) -> set[str]:
    """The seeds, which every agent is given anew."""
    return set(read_wiring(crawl).components["seeds"].settings["urls"])


def is_owed(folder: Path, url: str) -> bool:
    return story_of(folder, url).state == "owed"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Path]:
    """Three agents after a first run that was cut short, and files of theirs, while the web is there."""
    with web_of_hosts(hosts=6, pages=6) as web:
        for number in range(1, AGENTS + 1):
            begun(web, tmp_path, number, seeds=6, max_pages=4)
        yield tmp_path


def file_for(folder: Path) -> tuple[Path, Path]:
    """A file with URLs, and the crawl that it is for."""
    path = max(folder.glob("*/exchange/out/*.urls"), key=lambda one: one.stat().st_size)
    return path, folder / path.stem.split("-")[5].lstrip("0")


def test_a_bad_file_is_one_line_and_nothing_of_it_is_merged(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, crawl = file_for(pair)
    before = standing_at_rest(crawl)
    cut = pair / "cut.urls"
    cut.write_bytes(path.read_bytes()[:-3])
    capsys.readouterr()
    other = next(one for one in (pair / "1", pair / "2", pair / "3") if one != crawl)
    for arguments, why in (
        ([crawl, cut], "is cut"),
        ([crawl, pair / "gone.urls"], "cannot be read"),
        ([other, path], "merge it there"),
        ([crawl, pair / "1" / "state"], "no exchange file"),
    ):
        assert main(["merge", *map(str, arguments)]) == 2
        told = capsys.readouterr()
        [line] = told.err.splitlines()
        assert why in line and "all of it was merged" not in told.out
    now = standing_at_rest(crawl)
    assert (now.queued, now.exchange) == (before.queued, before.exchange)
    assert main(["merge", str(crawl), str(cut), str(path)]) == 2, "what is sound beside a bad one is merged"
    assert standing_at_rest(crawl).queued > before.queued
    merged = standing_at_rest(crawl)
    shutil.copytree(crawl, pair / "moved")
    assert main(["merge", str(pair / "moved"), str(path)]) == 0, (
        "twice is as good as once, also where the crawl was moved"
    )
    assert standing_at_rest(pair / "moved").queued == merged.queued


def test_a_folder_with_the_files_of_all_agents_is_merged_and_a_pipe_in_it_holds_up_nobody(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, crawl = file_for(pair)
    stick = pair / "stick"
    stick.mkdir()
    for one in pair.glob("*/exchange/out/*.urls"):
        shutil.copy(one, stick)
    before = standing_at_rest(crawl)
    assert main(["merge", str(crawl), str(stick)]) == 0
    assert standing_at_rest(crawl).queued > before.queued
    assert main(["merge", str(crawl), *map(str, stick.glob("*.urls"))]) == 0, "so does a shell's pattern"
    for one in stick.glob(f"*-to-agent-0{crawl.name}-*"):
        one.unlink()
    capsys.readouterr()
    assert main(["merge", str(crawl), str(stick)]) == 0
    assert "none is for this agent" in capsys.readouterr().err
    os.mkfifo(stick / "pipe.urls")
    assert main(["merge", str(crawl), str(stick)]) == 2
    assert "is not a regular file" in capsys.readouterr().err


def test_urls_that_no_crawl_can_keep_stop_no_merge_and_no_resume(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, crawl = file_for(pair)
    key = read_key(crawl / EXCHANGE_KEY)
    tasks = list(proved(path, key, f"agent-0{crawl.name}").tasks())
    sender = path.stem.split("-to-")[0].split("-", 1)[1]
    first, change = tasks[0], msgspec.structs.replace
    bad = [
        change(first, url="notaurl"),
        change(first, url="http:///"),
        change(first, depth=2**63),
        change(first, host=""),
    ]

    def sealed(name: Path, *those: Task) -> Path:
        writer, header = UrlFileWriter(), new_header(key, sender, f"agent-0{crawl.name}", 5.0, ())
        writer.add(those)
        writer.write(name, key, header)
        return name

    capsys.readouterr()
    assert main(["merge", str(crawl), str(sealed(pair / "bad.urls", *tasks, *bad))]) == 2
    said = capsys.readouterr()
    [line] = said.err.splitlines()
    assert "4 URLs of" in line
    assert "'notaurl': it is not a URL" in line
    assert ", 4 refused" in said.out
    # As an older version has left them: among those to be merged, though nothing of the kind should be there.
    sealed(crawl / IN / f"{sender}-0123456789abcdef.urls", *bad)
    (crawl / IN / f"{sender}-0123456789abcde0.urls").write_bytes(path.read_bytes()[:-3])
    assert main(["merge", str(crawl), str(pair / "bad.urls")]) == 2, "merged before, and no better"
    assert [one.name for one in (crawl / REFUSED).iterdir()] == [f"{sender}-0123456789abcde0.urls"]
    assert "it is put aside: " in capsys.readouterr().err
    assert main(["merge", str(crawl), str(path)]) == 0, "the same URLs by a sound file"
    options = build(all_options(), {"output": str(crawl), "resume": True, "max_pages": 1_000})
    summary = run(Crawl([], options, tables=False))
    assert summary.state == "finished"
    assert summary.cuts["refused"] == 8
    capsys.readouterr()
    assert main(["resume", str(crawl)]) == 0
    assert "refused:  8 URLs of other agents, since no crawl can keep them" in capsys.readouterr().out
    assert verify(crawl, deep=True).findings == []


def test_options_that_do_not_fit_are_refused_and_touch_nothing(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = str(pair / "1" / EXCHANGE_KEY)
    for options, why in (
        (["--exchange", "files"], "how many agents"),
        (["--exchange", "files", "--agents", "3"], "which of the 3 agents"),
        (["--exchange", "files", "--agents", "3", "--agent", "4"], "has 3 agents"),
        (["--exchange", "files", "--agents", "3", "--agent", "2"], "needs the key"),
        (["--exchange", "files", "--agents", "2", "--agent", "2", "--exchange-key", key], "leave --agents out"),
        (["--exchange", "files", "--agent", "2", "--exchange-key", str(pair / "1/crawl.toml")], "not an exchange key"),
        (["--agent", "2"], "add --exchange files"),
        (["--exchange", "files", "--agents", "2", "--agent", "1", "--strategy", "random-walk"], "cannot be divided"),
    ):
        capsys.readouterr()
        assert main(["crawl", "http://www.h0.test/", *options, "-o", str(pair / "new")]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert why in line
        assert not (pair / "new").exists()
    for arguments in (["--agents", "4"], ["--agent", "3"]):
        assert main(["resume", str(pair / "2"), *arguments]) == 2
        assert "keeps the agents that it began with" in capsys.readouterr().err
    with web_of_hosts(hosts=2, pages=1) as web:
        run(Crawl([seed_of(web)], options_for(web, pair / "plain"), tables=False))
    for command in (["exchange", str(pair / "plain")], ["merge", str(pair / "plain"), key]):
        capsys.readouterr()
        assert main(command) == 2
        assert "exchanges no files" in capsys.readouterr().err


def test_files_are_merged_and_written_while_a_crawl_runs_and_again_after_it_went_back(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, crawl = file_for(pair)
    checkpoint(crawl, "before")
    before = standing_at_rest(crawl)

    async def check() -> None:
        options = build(all_options(), {"output": str(crawl), "resume": True, "max_pages": 1_000})
        job = Crawl([], options, tables=False)
        running = asyncio.create_task(job.run())
        while not job.working:
            await asyncio.sleep(0)
        job.pause()
        assert await asyncio.to_thread(main, ["merge", str(crawl), str(path)]) == 0
        assert await asyncio.to_thread(main, ["exchange", str(crawl), "--again"]) == 0
        job.go_on()
        await running

    asyncio.run(check())
    told = capsys.readouterr().out
    assert "1 file merged" in told
    assert " for agent-0" in told
    merged = standing_at_rest(crawl)
    assert merged.exchange is not None
    assert (merged.exchange.merged, merged.queued) == (1, 0)
    restore(crawl, "before", forget_note)
    assert standing_at_rest(crawl).queued == before.queued
    asyncio.run(crawl_on(crawl))
    again = standing_at_rest(crawl)
    assert again.exchange is not None
    assert again.exchange.merged == 1, "the file lies in the crawl directory, and was merged once more"
    assert (again.discovered, again.queued) == (merged.discovered, 0)


async def crawl_on(crawl: Path) -> None:
    await Crawl(
        [], build(all_options(), {"output": str(crawl), "resume": True, "max_pages": 1_000}), tables=False
    ).run()
