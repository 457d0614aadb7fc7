"""A crawl with a store loses its folder and goes on elsewhere: nothing is lost, and no host is asked too early."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from tests.s3 import BUCKET, careless_server, variables
from tests.stores import (
    AGENTS,
    CONCURRENCY,
    GOSSAMER,
    LEASE,
    PUBLISHING,
    ROUND,
    SEVERAL,
    Site,
    check_web,
    on,
    site,
)
from tests.waiting import until

from gossamer.agents.cluster import living
from gossamer.backup.opening import FolderStore
from gossamer.cli.main import main
from gossamer.storage.members import holder_of
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb
from tools.killing.loop import hits_of


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_crawl_that_is_killed_with_its_folder_goes_on_elsewhere(kind: str, tmp_path: Path) -> None:
    with on(kind, tmp_path) as one:
        process = one.crawl("first")
        until(one.pages_of_store, 0.5)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        committed, published = one.pages("first"), one.pages_of_store()
        shutil.rmtree(tmp_path / "first")
        assert one.resume("second", "--take-over").wait(HUNG_AFTER) == 0, one.said("second")
        asked = check_web(one, "second")
        twice = {url for url in asked if url in committed and len(asked[url]) > 1 and url not in published}
        assert published & committed == published, "a checkpoint has nothing that was not committed"
        assert len(twice) <= len(committed - published) + CONCURRENCY
        whole = one.run("verify", "--deep", one.store)
        assert whole.returncode == 0, whole.stderr
        here, there = (
            one.run("cat", place, ROUND.first_page).stdout for place in (str(tmp_path / "second"), one.store)
        )
        assert here == there != ""
        check_status(one, "second")


def check_status(one: Site, name: str) -> None:
    """A crawl that has ended stands in its store as in its directory."""
    fields = ("state", "pages", "fetched", "outcomes", "errors", "discovered", "queued", "hosts")
    places = (one.store, str(one.folder / name))
    there, here = (json.loads(one.run("status", place, "--json").stdout) for place in places)
    assert {field: there[field] for field in fields} == {field: here[field] for field in fields}
    assert here["state"] == "finished"


@pytest.mark.long
@pytest.mark.parametrize("more", [[], ["--designation", "master"]], ids=["ring", "master"])
def test_a_crawl_of_two_agents_that_is_killed_with_its_folder_goes_on_elsewhere(
    more: list[str], tmp_path: Path
) -> None:
    with on("folder", tmp_path) as one:
        process = one.crawl("first", *SEVERAL, *more)
        until(one.pages_of_store, 0.5)
        committed = set().union(*(one.pages("first", agent) for agent in AGENTS))
        one.lose("first", process)
        published = one.pages_of_store()
        assert one.resume("second", "--take-over").wait(HUNG_AFTER) == 0, one.said("second")
        asked = check_web(one, "second")
        twice = {url for url in asked if url in committed and len(asked[url]) > 1 and url not in published}
        assert len(twice) <= len(committed - published) + CONCURRENCY
        whole = one.run("verify", "--deep", one.store)
        assert whole.returncode == 0, whole.stdout + whole.stderr
        check_status(one, "second")


def test_an_agent_that_is_killed_with_its_folder_goes_on_from_its_checkpoint_while_the_other_works(
    tmp_path: Path,
) -> None:
    with on("folder", tmp_path) as one:
        process = one.crawl("first", *SEVERAL)
        until(one.all_have_published)
        committed = one.pages("first", "agent-01")
        (tmp_path / "first" / "state" / "agent-01").rename(tmp_path / "lost")
        os.kill(int(holder_of(tmp_path / "lost" / "lock")), signal.SIGKILL)
        assert process.wait(HUNG_AFTER) == 0, one.said("first")
        assert "agent-01 has lost its ledger, and goes on from its last checkpoint" in one.said("first")
        asked = check_web(one, "first")
        twice = {url for url in asked if url in committed and len(asked[url]) > 1}
        assert len(twice) <= len(committed) + CONCURRENCY
        whole = one.run("verify", "--deep", str(tmp_path / "first"))
        assert whole.returncode == 0, whole.stdout + whole.stderr


@pytest.mark.long
def test_an_agent_that_was_suspended_while_another_process_took_its_place_takes_in_nothing_more(tmp_path: Path) -> None:
    with on("folder", tmp_path) as one:
        first = one.crawl("first", *SEVERAL)
        until(one.all_have_published)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        zombie = living(tmp_path / "first", AGENTS)["agent-01"]
        os.kill(zombie, signal.SIGSTOP)
        (tmp_path / "first" / "state" / "agent-01").rename(tmp_path / "lost")
        second = one.begin("second", [*GOSSAMER, "resume", str(tmp_path / "first"), "--json"])
        until(lambda: "has lost its folder and is still there" in one.said("second"))
        os.kill(zombie, signal.SIGCONT)
        until(lambda: not holder_of(tmp_path / "lost" / "lock"))
        assert second.wait(HUNG_AFTER) == 0, one.said("second")
        assert ROUND.expected() - one.pages("first") == set()
        check_web(one, "first")


def test_an_owner_that_was_suspended_for_longer_than_its_lease_ends_and_harms_nothing(tmp_path: Path) -> None:
    with on("folder", tmp_path) as one:
        old = one.crawl("first")
        until(one.pages_of_store, 0.5)
        refused = one.run("resume", one.store, "-o", str(tmp_path / "early"))
        assert refused.returncode == 5
        assert "is owned by process" in refused.stderr
        assert refused.stderr.count("\n") == 1
        os.killpg(old.pid, signal.SIGSTOP)
        store = FolderStore(Path(one.store))
        until(lambda: time.time() - store.stat("agents/agent-00/head.json").modified > LEASE)  # its clock is this one
        new = one.resume("second")
        until((tmp_path / "second" / "logs" / "crawl.jsonl").exists)
        os.killpg(old.pid, signal.SIGCONT)
        assert old.wait(HUNG_AFTER) == 3
        assert one.said("first").count("belongs to another process by now, so this one ends") >= 1
        assert new.wait(HUNG_AFTER) == 0, one.said("second")
        check_web(one, "second")
        again = one.run("resume", str(tmp_path / "first"))
        assert again.returncode == 5
        assert "went on elsewhere" in again.stderr


def test_an_archive_that_is_in_the_store_alone_is_read_exported_and_deleted_from_as_one_that_is_here(
    tmp_path: Path,
) -> None:
    with on("s3", tmp_path) as one:
        few = ("--max-pages", "150", "--set", "archive.rotate_bytes=200kB")
        process = one.crawl("first", "--keep-local", "0", *few)
        assert process.wait(HUNG_AFTER) == 0, one.said("first")
        crawl = str(tmp_path / "first")

        def far() -> int:
            return sum(path.is_symlink() for path in (tmp_path / "first" / "warc").iterdir())

        before = far()
        assert before > 1
        whole = one.run("verify", "--deep", crawl)
        assert whole.returncode == 0, whole.stdout + whole.stderr
        here, there = (one.run("cat", place, ROUND.first_page).stdout for place in (crawl, one.store))
        assert here == there != ""
        wacz = one.run("export", crawl, "--to", "wacz", "-o", str(tmp_path / "x.wacz"))
        assert wacz.returncode == 0, wacz.stderr
        again = one.run("reprocess", crawl)
        assert "0 errors" in again.stdout + again.stderr
        assert far() == before
        assert one.resume("second").wait(HUNG_AFTER) == 0, one.said("second")
        assert sum(path.is_symlink() for path in (tmp_path / "second" / "warc").iterdir()) >= before
        deleted = one.run("delete", str(tmp_path / "second"), ROUND.first_page)
        assert deleted.returncode == 0, deleted.stderr
        whole = one.run("verify", "--deep", str(tmp_path / "second"))
        assert whole.returncode == 0, whole.stdout + whole.stderr


def test_a_crawl_that_has_lost_a_disk_of_its_archive_goes_on_and_reads_the_store_instead(tmp_path: Path) -> None:
    with on("folder", tmp_path) as one:
        disk = tmp_path / "disk"
        process = one.crawl("first", "--archive", str(disk), "--set", "archive.rotate_bytes=50kB", "--max-pages", "200")
        assert process.wait(HUNG_AFTER) == 0, one.said("first")
        crawl = str(tmp_path / "first")
        before = one.run(
            "query", crawl, "select url from pages where outcome = 'ok'", "--format", "csv"
        ).stdout.split()[1:]
        on_disk = len(list(disk.iterdir()))
        assert on_disk > 1
        shutil.rmtree(disk)
        again = one.run("resume", crawl, "--max-pages", "230")
        assert again.returncode == 0, again.stderr
        assert len(one.pages("first")) > len(before)
        assert f"{on_disk} archive files lay on a disk that is not there" in again.stdout + again.stderr
        whole = one.run("verify", "--deep", crawl)
        assert whole.returncode == 0, whole.stdout + whole.stderr
        assert all(one.run("cat", crawl, url).stdout for url in before[:: len(before) // 4])


def test_a_crawl_with_copies_loses_one_disk_after_the_other_and_no_page(tmp_path: Path) -> None:
    with on("folder", tmp_path) as one:
        disk, copy, last = (tmp_path / name for name in ("disk", "copy", "last"))
        disks = [word for path in (disk, copy, last) for word in ("--archive", str(path))]
        command = [*ROUND.command(tmp_path / "first", one.port), *disks, "--copies", "3", *PUBLISHING]
        process = one.begin("first", [*command, "--set", "archive.rotate_bytes=50kB"])
        one.store = str(last)
        until(one.pages_of_store)
        copy.rename(tmp_path / "lost")
        until(lambda: f"the copy in {copy} is left out" in one.said("first"))
        before = len(one.pages("first"))
        until(lambda: len(one.pages("first")) > before)
        committed = one.pages("first")
        one.lose("first", process)
        shutil.rmtree(disk)
        published = one.pages_of_store()
        assert one.resume("second", "--take-over").wait(HUNG_AFTER) == 0, one.said("second")
        asked = check_web(one, "second")
        twice = {url for url in asked if url in committed and len(asked[url]) > 1 and url not in published}
        assert len(twice) <= len(committed - published) + CONCURRENCY
        whole = one.run("verify", "--deep", str(tmp_path / "second"))
        assert whole.returncode == 0, whole.stdout + whole.stderr


def test_triples_and_words_of_a_crawl_are_found_by_its_store_and_no_line_names_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    store, crawl = str(tmp_path / "store"), str(tmp_path / "crawl")
    thing = (
        '<a href="/b">b</a><script type="application/ld+json">{"@context": "https://schema.org", "name": "%s"}</script>'
    )
    names = "SELECT ?name { ?thing schema:name ?name } ORDER BY ?name"

    def said(*words: str, status: int = 0) -> str:
        capfd.readouterr()
        assert main([*words]) == status
        both = "".join(capfd.readouterr())
        assert str(tmp_path / "cache") not in both
        return both

    with FakeWeb({"/": f"<p>lantern</p>{thing % 'A'}", "/b": f"<p>lantern</p>{thing % 'B'}"}) as web:
        said("crawl", web.url("/"), "-o", crawl, "--store", store, "--rdf", "--delay", "0", "--quiet")
        assert said("sparql", store, names, "-f", "csv").split() == ["name", "A", "B"]
        assert f"make one with: gossamer index {store}" in said("search", store, "lantern", status=2)
        assert "2 documents in the index" in said("index", store)
        assert "2 documents" in said("search", store, "lantern")
        said("delete", crawl, web.url("/b"))
        said("resume", crawl, "--quiet", "--max-pages", "1")
        assert said("sparql", store, names, "-f", "csv").split() == ["name", "A"], "a deletion reaches readers"
    assert f"{store}: whole" in said("verify", "--deep", store)
    assert store in said("status", store)
    assert "nothing is set aside" in said("traps", store)
    assert f"gossamer resume {store} -o DIR" in said("traps", store, "--release", "all", status=2)
    assert f"gossamer resume {store} -o DIR" in said("delete", store, "x.test", status=2)


def test_a_store_that_ignores_conditions_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    with careless_server() as url, site(tmp_path, f"s3://{BUCKET}/x", variables(url)) as one:
        assert one.crawl("first").wait(HUNG_AFTER) == 5
        assert "ignores conditions" in one.said("first")
        assert not (tmp_path / "first").exists()
        assert not (tmp_path / "requests.log").exists() or hits_of(tmp_path / "requests.log") == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--store", "s3://bucket/x", "--crawlers", "2"], "leave out --crawlers or --store"),
        (["--store", "s3://key:hushhush@bucket/x"], "give keys in the environment"),
        (["--store", "http://host/x"], "no store of this kind"),
        (["--store", "s3:bucket/x"], "write it with two slashes, as s3://bucket/example"),
        (["--checkpoint-every", "10s"], "also give --store"),
        (["--store", "x/copy"], "lies in the directory of the crawl, and is lost with it"),
        (["--copies", "2"], "--copies 2: give --archive a folder on another disk"),
        (["--copies", "2", "--archive", "x"], "lies in the directory of the crawl, and is lost with it"),
        (["--copies", "2", "--archive", "y", "--store", "z"], "leave one of the two out"),
        (["--store", "x"], "lies in the directory of the crawl, and is lost with it"),
        (["--store", "other"], "is the directory of a crawl; name an empty folder"),
        (["--store", "folder:/proc/nothing/x"], "--store /proc/nothing/x: No such file or directory; name a folder"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(more: list[str], told: str, tmp_path: Path) -> None:
    one = Site(tmp_path, 1, "", {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "crawl.toml").touch()
    refused = one.run(
        "crawl", "http://127.0.0.1:1/", "-o", str(tmp_path / "x"), "--allow-network", "127.0.0.0/8", *more
    )
    assert refused.returncode == 2
    assert told in refused.stderr
    assert "hushhush" not in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_a_secret_in_the_url_of_a_store_that_is_resumed_is_not_told(tmp_path: Path) -> None:
    one = Site(tmp_path, 1, "", {})
    for words in (("s3://key:hushhush@bucket/x",), ("https://key:hushhush@bucket/x", "-o", "here")):
        refused = one.run("resume", *words)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
        assert "hushhush" not in refused.stderr
    for command in ("trim", "pause"):
        refused = one.run(command, "s3://key:hushhush@bucket/x")
        assert (refused.returncode, refused.stderr[:36]) == (2, "gossamer: s3://bucket/x is a store (")


def test_a_store_in_a_cloud_without_its_package_names_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "obstore.py").write_text("raise ImportError('it is not installed')\n")
    one = Site(tmp_path, 1, "", {"PYTHONPATH": str(tmp_path)})
    seed = ("http://127.0.0.1:1/", "-o", str(tmp_path / "x"), "--store", "s3://bucket/x")
    assert one.begin("refused", [*GOSSAMER, "crawl", *seed]).wait(HUNG_AFTER) == 2
    said = one.said("refused")
    assert "needs the package obstore: " in said
    assert "install" in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_a_crawl_that_had_no_store_ships_everything_into_its_first_one_and_keeps_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    store, crawl = str(tmp_path / "store"), str(tmp_path / "crawl")
    with FakeWeb({"/": '<a href="/b">b</a>', "/b": "<p>b</p>"}) as web:
        assert main(["crawl", web.url("/"), "-o", crawl, "--delay", "0", "--quiet"]) == 0
        assert main(["resume", crawl, "--store", store, "--quiet"]) == 0
        capfd.readouterr()
        assert main(["verify", "--deep", store]) == 0
        assert "2 documents were read" in capfd.readouterr().out
        assert main(["resume", crawl, "--store", str(tmp_path / "other"), "--quiet"]) == 2
    assert f"the crawl has the store {store}, and keeps it" in capfd.readouterr().err
    assert not (tmp_path / "other").exists()


def test_of_two_that_resume_a_store_at_once_one_goes_on_and_the_other_one_says_who_has_the_crawl(
    tmp_path: Path,
) -> None:
    with on("folder", tmp_path) as one:
        assert one.crawl("first", "--max-pages", "10").wait(HUNG_AFTER) == 0, one.said("first")
        names = ("second", "third")
        both = {name: one.resume(name, "--max-pages", "150") for name in names}
        ends = {name: process.wait(HUNG_AFTER) for name, process in both.items()}
        assert sorted(ends.values()) == [0, 5]
        [refused] = [name for name, end in ends.items() if end]
        assert len(one.said(refused).splitlines()) == 1
        assert "is owned by process" in one.said(refused) or "another process has just taken" in one.said(refused)
        assert not (tmp_path / refused).exists()
