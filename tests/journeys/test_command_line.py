"""The command line as a person meets it, in a process of its own where that counts: output, statuses, one line for bad input."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.commands import gave
from tests.sampling import sampled

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.cli.main import main
from gossamer.crawls.options import CrawlOptions
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def patience(arguments: Sequence[str]) -> list[str]:
    """Let a crawl that names no delay have none."""
    return ["--delay", "0"] if arguments[:1] == ("crawl",) and "--delay" not in arguments else []


def start(*arguments: str, stdin: int = subprocess.DEVNULL, cwd: Path | None = None) -> "subprocess.Popen[str]":
    """Start the command with nothing of the test's environment that it could lean on."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, "-m", "gossamer", *arguments, *patience(arguments)]
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd
    )


def gossamer(*arguments: str, given: str = "", cwd: Path | None = None) -> tuple[int, str, str]:
    """Run the command to its end: exit status, standard output, standard error."""
    return gave(*arguments, *patience(arguments), given=given, cwd=cwd)


def process(*arguments: str) -> tuple[int, str, str]:
    """The same in a process of its own."""
    started = start(*arguments)
    out, err = started.communicate(timeout=HUNG_AFTER)
    return started.returncode, out, err


def test_json_prints_one_line_with_every_promised_field(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 3) as web:
        status, out, err = process("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert out.count("\n") == 1
    assert told["crawl"] == str(tmp_path / "c")
    assert (told["state"], told["pages"], told["fetched"], told["unique_documents"]) == ("finished", 13, 13, 13)
    assert set(told) >= {"bytes", "outcomes", "discovered", "queued", "hosts", "seconds", "pages_per_second"}
    assert told["cuts"] == {}
    assert told["cpu_seconds"] > 0
    assert told["peak_rss_bytes"] > 1_000_000


def test_without_json_a_person_reads_one_report(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        status, out, _ = process("crawl", web.url("/"), "-o", str(tmp_path / "c"))
    assert status == 0
    assert out.startswith("finished: 3 pages, 3 fetched")
    assert "outcomes: 3 ok" in out


def test_a_report_says_what_another_order_would_have_cut_elsewhere(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        status, out, _ = gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--max-pages", "1")
    assert status == 0
    assert "cut:      2 by --max-pages; another order of the pages would leave out other URLs\n" in out


def test_the_default_directory_is_named_after_host_and_date(tmp_path: Path) -> None:
    with FakeWeb.tree(0, 0) as web:
        status, out, _ = gossamer("crawl", web.url("/"), "--json", cwd=tmp_path)
    assert status == 0
    assert json.loads(out)["crawl"].startswith("crawl-127.0.0.1-2")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_second_crawl_of_a_host_on_one_day_takes_the_next_free_directory(tmp_path: Path) -> None:
    with FakeWeb.tree(0, 0) as web:
        first, second = (json.loads(gossamer("crawl", web.url("/"), "--json", cwd=tmp_path)[1]) for _ in "12")
    assert second["crawl"] == f"{first['crawl']}-2"
    assert sorted(path.name for path in tmp_path.iterdir()) == [first["crawl"], second["crawl"]]


def test_crawls_of_a_host_that_begin_at_once_have_a_directory_each(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        begun = [start("crawl", web.url("/"), "--json", cwd=tmp_path) for _ in "123"]
        told = [json.loads(process.communicate(timeout=HUNG_AFTER)[0]) for process in begun]
    assert [process.returncode for process in begun] == [0, 0, 0]
    assert [one["pages"] for one in told] == [3, 3, 3]
    assert sorted(one["crawl"] for one in told) == sorted(path.name for path in tmp_path.iterdir())
    assert len({one["crawl"] for one in told}) == 3


def test_readers_that_go_change_no_status_and_two_writers_of_a_file_leave_it_whole(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        assert gossamer("crawl", web.url("/"), "-o", "c", "--quiet", cwd=tmp_path)[0] == 0
    asked = start("query", "c", "SELECT * FROM range(1000000)", "-f", "csv", cwd=tmp_path)
    assert asked.stdout is not None and asked.stderr is not None
    assert asked.stdout.readline() == "range\n"
    asked.stdout.close()
    assert (asked.stderr.read(), asked.wait(HUNG_AFTER)) == ("", 0)
    asked.stderr.close()
    begun = [start("export", "c", "--to", "wacz", "-o", "c.wacz", cwd=tmp_path) for _ in "12"]
    told = [process.communicate(timeout=HUNG_AFTER) for process in begun]
    assert [process.returncode for process in begun] == [0, 0], told
    assert zipfile.ZipFile(tmp_path / "c.wacz").testzip() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "c.wacz"]


@pytest.mark.parametrize("agents", [1, 2])
def test_a_crawl_whose_free_name_is_taken_before_it_begins_has_the_next_one(
    agents: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeWeb.tree(1, 2) as web:
        job = SupervisedCrawl([web.url("/")], CrawlOptions(agents=agents, delay=0.0), tables=False)
        (found := job.directory).mkdir()
        summary = asyncio.run(job.run())
    assert (summary.pages, summary.crawl, str(job.directory)) == (3, f"{found}-2", f"{found}-2")
    assert list(found.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["http://"], "'http://' is not a URL: it names no host; write it in full"),
        (["docs.example", "--resolve", "docs.example=192.0.2.7"], "--contact"),
        (["http://127.0.0.1:9/", "--delay", "-1"], "at least 0"),
        (["http://127.0.0.1:9/", "--user-agent", ""], "--user-agent"),
        (["http://127.0.0.1:9/", "--contact", "nobody"], "mail address"),
        (["/srv/www/a.html"], "did you mean file:///srv/www/a.html?"),
        (["nonsense://127.0.0.1/"], "this wiring has file, ftp, gopher, http, https"),
        (["mailto:me@example.org"], "names no host"),
        ([""], "not a URL"),
        (["no url"], "'no url' is not a URL; write it in full"),
        (["http://0.0.0.0/"], "an unspecified address"),
        (["http://127.0.0.1:9/", "--scoop", "host"], "--scope"),
        (["http://127.0.0.1:9/", "--scope", "hots"], "did you mean 'host'?"),
        (["http://127.0.0.1:9/", "--depth", "many"], "depth"),
        (["http://127.0.0.1:9/", "--max-time", "10 parsecs"], "10m"),
        (["http://127.0.0.1:9/", "--linger", "never"], "1h30m, or forever"),
        (["http://127.0.0.1:9/", "--user-agent", "\udcff"], "LC_ALL=C.UTF-8"),
        (["http://127.0.0.1:9/\udce9"], "is not text in utf-8"),
        (["http://127.0.0.1:9/", "--set", "politeness.per_hots=2"], "per_host"),
        (["http://127.0.0.1:9/", "--set", "fontier.per_host=2"], "frontier"),
        (["http://127.0.0.1:9/", "--wiring", "no-such"], "default"),
        (["http://127.0.0.1:9/", "--exclude", "("], "exclude"),
        (["http://127.0.0.1:9/", "--resolve", "nonsense"], "resolve"),
        (["http://192.0.2.7/"], "--contact"),
        ([], "seed"),
    ],
)
def test_bad_usage_is_one_clear_line_and_no_directory(
    tmp_path: Path, arguments: list[str], says: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOSSAMER_CONTACT", raising=False)
    line = ["crawl", *arguments, "-o", str(tmp_path / "c")]
    if any(not argument.isascii() for argument in arguments):
        status, out, err = process(*line)  # how the interpreter reads its arguments is part of it
    else:
        status, (out, err) = main(line), capfd.readouterr()
    assert status == 2, err
    assert out == ""
    assert says in err
    assert err.startswith("gossamer: ")
    assert [line for line in err.splitlines() if ": read as " not in line] == err.splitlines()[-1:]
    assert not (tmp_path / "c").exists()


def test_no_message_shows_a_type_of_the_language() -> None:
    for option, value in (("--depth", "-1"), ("--max-pages", "0"), ("--concurrency", "99999"), ("--delay", "-3")):
        _, _, err = gossamer("crawl", "http://127.0.0.1:9/", option, value)
        assert not any(word in err for word in ("`int", "`float", "a int", "a float", "None", "Literal")), err


@pytest.mark.parametrize("written", ["127.0.0.1:{port}/a", "localhost:{port}/a"])
def test_a_seed_without_scheme_is_read_as_the_server_speaks(tmp_path: Path, written: str) -> None:
    with FakeWeb({"/a": "a"}) as web:
        seed = written.format(port=web.port)
        status, out, err = gossamer("crawl", seed, "-o", str(tmp_path / "c"), "--json")
    assert (status, json.loads(out)["pages"]) == (0, 1)
    assert f"seed {seed}: read as http://{seed}" in err


def test_a_second_crawl_in_the_directory_of_a_running_one_ends_with_5(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/slow">x</a>', "/slow": FakePage(silent=True)}) as web:
        process = start("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--json")
        web.wait_for(2)
        status, _, err = gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"))
        process.kill()
        process.communicate(timeout=HUNG_AFTER)
    assert (status, "is in use by process" in err) == (5, True)


def test_options_and_seeds_come_from_a_configuration_file(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 2) as web:
        (tmp_path / "c.toml").write_text(f'seeds = ["{web.url("/")}"]\n[crawl]\ndepth = 1\n')
        status, out, _ = gossamer("crawl", "--config", str(tmp_path / "c.toml"), "-o", str(tmp_path / "c"), "--json")
    assert (status, json.loads(out)["pages"]) == (0, 3)


def test_a_bad_line_of_a_seed_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("http://127.0.0.1:9/\n# more\nhttp://\n")
    status, _, err = gossamer("crawl", "--seeds", str(tmp_path / "seeds.txt"), "-o", str(tmp_path / "c"))
    assert status == 2
    assert f"{tmp_path / 'seeds.txt'}, line 3: " in err


def test_a_document_of_a_scheme_without_status_codes_was_fetched(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    url, folder = (tmp_path / "a.txt").as_uri(), str(tmp_path / "c")
    assert gossamer("crawl", url, "-o", folder, "--quiet", "--delay", "0")[0] == 0
    assert gossamer("why", folder, url)[1].startswith(f"{url}: it was fetched: ok, ")


def test_cat_says_why_there_is_nothing_after_a_crawl_without_archive(tmp_path: Path) -> None:
    with FakeWeb({"/": "a"}) as web:
        assert gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--no-warc")[0] == 0
        status, _, err = gossamer("cat", str(tmp_path / "c"), web.url("/"))
    assert (status, "--no-warc" in err) == (2, True)


def test_usage_names_the_program(tmp_path: Path) -> None:
    assert gossamer("crawl", "--help")[1].startswith("Usage: gossamer crawl ")


# -- readers that go, and places that are full


def slow_web() -> FakeWeb:
    """A site whose crawl takes minutes, though no request does: it ends soon where it is stopped."""
    return FakeWeb.graph({"/": ["/1"], **{f"/{page}": [f"/{page + 1}"] for page in range(1, 1_000)}}, latency=0.1)


@pytest.mark.parametrize("number", sampled([signal.SIGTERM, signal.SIGINT, signal.SIGHUP], 3))
def test_a_signal_stops_a_crawl_whose_output_nobody_reads(tmp_path: Path, number: signal.Signals) -> None:
    with slow_web() as web:
        process = start("crawl", web.url("/"), "-o", str(tmp_path / "c"))
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        web.wait_for(2)
        process.send_signal(number)
        status = process.wait(timeout=HUNG_AFTER)
    assert status == 3
    assert json.loads(gossamer("status", str(tmp_path / "c"), "--json")[1])["state"] == "stopped"


def test_a_signal_that_is_ignored_from_the_start_stays_ignored(tmp_path: Path) -> None:
    with FakeWeb.tree(3, 3, latency=0.02) as web:
        previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            process = start("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--json")
        finally:
            signal.signal(signal.SIGHUP, previous)
        web.wait_for(2)
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=HUNG_AFTER)
    assert (process.returncode, json.loads(out)["pages"]) == (0, 40)


def test_a_full_output_changes_no_crawl_and_is_told(tmp_path: Path) -> None:
    with FakeWeb({"/": "a"}) as web, Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "gossamer", "crawl", web.url("/"), "-o", str(tmp_path / "c"), "--json"]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": "/"}
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, timeout=HUNG_AFTER
        )
    assert done.returncode == 2
    assert done.stderr == "gossamer: standard output cannot be written: No space left on device\n"
    assert json.loads(gossamer("status", str(tmp_path / "c"), "--json")[1])["state"] == "finished"


def test_a_full_output_of_a_query_is_one_line(tmp_path: Path) -> None:
    with FakeWeb({"/": "a"}) as web:
        assert gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"))[0] == 0
    command = [sys.executable, "-m", "gossamer", "query", str(tmp_path / "c"), "SELECT url FROM pages"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": "/"}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, timeout=HUNG_AFTER
        )
    assert (done.returncode, done.stderr) == (
        2,
        "gossamer: standard output cannot be written: No space left on device\n",
    )


@contextlib.contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process may grow beyond this, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("form", ["wacz", "chunks"])
def test_an_export_that_finds_no_room_is_one_line_and_leaves_nothing(tmp_path: Path, form: str) -> None:
    target = tmp_path / "out" / "export.jsonl"
    target.parent.mkdir()
    with FakeWeb({"/": f"<p>{' '.join(map(str, range(20_000)))}"}) as web:
        assert gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"))[0] == 0
    with room_for(20_000):
        status, _, err = gossamer("export", str(tmp_path / "c"), "--to", form, "-o", str(target))
    assert (status, err) == (2, f"gossamer: {target} cannot be written: File too large\n")
    assert not list(target.parent.iterdir())


def test_ranks_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    with FakeWeb({"/": "a"}) as web:
        assert gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"))[0] == 0
    in_the_way = tmp_path / "c" / "tables" / "ranks"
    in_the_way.write_bytes(b"")
    status, _, err = gossamer("rank", str(tmp_path / "c"))
    assert (status, err) == (2, f"gossamer: {in_the_way} cannot be written: Not a directory\n")


@pytest.mark.parametrize("name", ["state/made.json", "state/crawl-id"])
def test_a_folder_in_the_place_of_a_file_is_one_line(tmp_path: Path, name: str) -> None:
    with FakeWeb({"/": "a"}) as web:
        assert gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"))[0] == 0
    in_the_way = tmp_path / "c" / name
    in_the_way.unlink()
    in_the_way.mkdir()
    status, _, err = gossamer("query", str(tmp_path / "c"), "SELECT url FROM pages")
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"gossamer: {in_the_way}: Is a directory; ")


def test_a_poor_locale_gets_escapes_and_no_traceback(tmp_path: Path) -> None:
    with FakeWeb({"/": "<title>\u00e9\u4e2d</title>a"}) as web:
        assert gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"))[0] == 0
    command = [sys.executable, "-m", "gossamer", "query", str(tmp_path / "c"), "SELECT title FROM pages"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": "/", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HUNG_AFTER)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xe9\\u4e2d" in done.stdout


def test_a_directory_that_holds_a_crawl_is_refused_and_replaced_on_request(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        folder = str(tmp_path / "c")
        assert gossamer("crawl", web.url("/"), "-o", folder)[0] == 0
        status, _, err = gossamer("crawl", web.url("/"), "-o", folder)
        assert status == 2
        assert "holds a crawl" in err
        assert gossamer("crawl", web.url("/"), "-o", folder, "--overwrite", "--json")[0] == 0


def test_a_crawl_that_comes_to_nothing_gives_back_what_it_was_to_replace(tmp_path: Path) -> None:
    (tmp_path / "c.replaced").mkdir()
    folder = str(tmp_path / "c")
    with FakeWeb.tree(1, 2) as web:
        seed = web.url("/")
        assert gossamer("crawl", seed, "-o", folder)[0] == 0
        status, _, err = gossamer("crawl", seed, "-o", folder, "--overwrite")
        assert (status, "c.replaced is in the way" in err) == (2, True), "what stands there is somebody's"
    (tmp_path / "c.replaced").rmdir()
    before = sorted(path.name for path in (tmp_path / "c" / "warc").iterdir())
    status, _, err = gossamer("crawl", seed, "-o", folder, "--overwrite")
    assert status == 4
    assert "keeps what it held" in err
    assert sorted(path.name for path in (tmp_path / "c" / "warc").iterdir()) == before
    assert gossamer("cat", folder, seed)[0] == 0
    assert not (tmp_path / "c.replaced").exists()


def test_a_crawl_that_runs_is_not_replaced(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/slow">x</a>', "/slow": FakePage(silent=True)}) as web:
        process = start("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--json")
        web.wait_for(2)
        status, _, err = gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--overwrite")
        assert (status, "is in use by process" in err) == (5, True)
        assert (tmp_path / "c" / "crawl.toml").exists()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "once more" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HUNG_AFTER)
    assert process.returncode == 3


def test_a_directory_with_other_things_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.txt").write_text("mine")
    status, _, err = gossamer("crawl", "http://127.0.0.1:9/", "-o", str(tmp_path / "c"), "--overwrite")
    assert status == 2
    assert "not empty" in err
    assert (tmp_path / "c" / "thesis.txt").read_text() == "mine"


def test_an_unwritable_directory_is_refused(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.access(locked, os.W_OK):
        # Root may write everywhere; a file in the way of a folder stops root too.
        locked = tmp_path / "file"
        locked.write_text("")
    status, _, err = gossamer("crawl", "http://127.0.0.1:9/", "-o", str(locked / "c"))
    assert status == 2
    assert "cannot be written" in err


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, _, err = gossamer("crawl", "http://127.0.0.1:9/", "-o", str(tmp_path / "file" / "c"))
    assert status == 2
    assert "cannot be written" in err


def test_an_empty_seed_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("# nothing yet\n\n")
    status, _, err = gossamer("crawl", "--seeds", str(tmp_path / "seeds.txt"), "-o", str(tmp_path / "c"))
    assert status == 2
    assert "holds no seed" in err


def test_seeds_are_read_from_standard_input(tmp_path: Path) -> None:
    with FakeWeb({"/a": "a", "/b": "b"}) as web:
        seeds = f"{web.url('/a')}\n# a comment\n{web.url('/b')}\n"
        status, out, _ = gossamer("crawl", "--seeds", "-", "-o", str(tmp_path / "c"), "--json", given=seeds)
    assert status == 0
    assert json.loads(out)["pages"] == 2


@pytest.mark.parametrize(("fail_on", "expected"), [("any", 4), ("seeds", 0), ("none", 0)])
def test_one_failing_page_fails_the_crawl_only_where_it_should(fail_on: str, expected: int, tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/bad">b</a>', "/bad": FakePage("oops", status=500)}) as web:
        options = ("-o", str(tmp_path / "c"), "--linger", "0s", "--fail-on", fail_on)
        status, out, err = gossamer("crawl", web.url("/"), *options)
        assert status == expected
        assert "queued:   1 URL failed so far, and can be tried again\n" in out
        assert ("with --fail-on seeds it is 0" in out) == (fail_on == "any")
        assert f"gossamer: the only URL that failed: {web.url('/bad')}\n" in err


def test_no_document_is_a_failure_of_the_seeds(tmp_path: Path) -> None:
    with FakeWeb({}) as web:
        assert gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--fail-on", "seeds")[0] == 4
        assert gossamer("crawl", web.url("/"), "-o", str(tmp_path / "d"), "--fail-on", "none")[0] == 0


def test_a_dead_proxy_is_named_as_the_reason(tmp_path: Path) -> None:
    with FakeWeb.tree(0, 0) as web:
        _, _, err = gossamer("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--proxy", "http://127.0.0.1:9")
    assert "connect_failed; Failed to connect to 127.0.0.1:9 over proxy" in err


def test_an_unreachable_seed_ends_at_once_with_4_and_no_directory(tmp_path: Path) -> None:
    with FakeWeb({}) as web:
        seed = web.url("/")
    status, out, err = gossamer("crawl", seed, "-o", str(tmp_path / "c"), "--json")
    assert status == 4
    assert json.loads(out)["state"] == "incomplete"
    assert not (tmp_path / "c").exists()
    assert f"gossamer: seed {seed}: its robots.txt did not come: connect_failed; Failed to connect to 127.0.0.1:" in err
    assert "is removed" in err


def test_a_report_names_no_directory_that_is_not_there(tmp_path: Path) -> None:
    with FakeWeb({}) as web:
        seed = web.url("/")
    _, out, _ = gossamer("crawl", seed, "-o", str(tmp_path / "c"))
    assert out.startswith("incomplete: nothing was fetched: 0 pages")
    assert str(tmp_path / "c") not in out


def test_a_stop_does_not_wait_for_an_answer_that_never_comes(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/slow">x</a>', "/slow": FakePage(silent=True)}) as web:
        process = start("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--json")
        web.wait_for(2)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=HUNG_AFTER)
    assert "the requests in flight did not end within" in err
    assert (process.returncode, json.loads(out)["state"]) == (3, "stopped")


def test_ctrl_c_ends_gracefully_and_a_second_one_at_once(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/slow">x</a>', "/slow": FakePage(silent=True)}) as web:
        process = start("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--json")
        web.wait_for(2)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "once more" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HUNG_AFTER)
    assert process.returncode == 3
    assert "did not end within" not in err, "it waited for what is in flight"
    assert json.loads(out)["state"] == "stopped"
    assert (tmp_path / "c" / "logs" / "crawl.jsonl").read_text().count('"event":"page"') == 1


def test_an_option_of_an_earlier_version_is_no_advice() -> None:
    _, _, err = gossamer("crawl", "http://127.0.0.1:9/", "--keep-tryin")
    assert "--keep-trying" not in err and "'--keep-words'" in err
    assert "'--delay'" in gossamer("crawl", "http://127.0.0.1:9/", "--dely", "1")[2]


@pytest.mark.parametrize("host", ["", "*.", "*.*.test", "a b", "http://a.test/"])
def test_a_setting_of_no_host_is_refused_before_a_crawl_is_asked(host: str) -> None:
    status, _, err = gossamer("set", ".", "--host", host, "delay=1")
    assert (status, "is not a host or domain; write example.org" in err) == (2, True), err


def test_a_seed_whose_name_has_no_address_is_told_in_words(tmp_path: Path) -> None:
    _, _, err = gossamer("crawl", "http://gone.invalid/", "--contact", "a@b.example", "-o", str(tmp_path / "c"))
    assert "gossamer: seed http://gone.invalid/: its name has no address (dns_failed)\n" in err


def test_an_unknown_command_names_the_nearest() -> None:
    status, _, err = gossamer("crawll", "http://127.0.0.1:9/")
    assert status == 2
    assert "did you mean 'crawl'" in err


def test_version_and_help_teach() -> None:
    status, out, _ = gossamer("--version")
    assert (status, out.startswith("gossamer ")) == (0, True)
    status, out, _ = gossamer("crawl", "--help")
    assert status == 0
    assert "Ctrl-C stops gracefully" in out


@pytest.mark.parametrize("form", ["text", "toml", "dot", "mermaid", "json"])
def test_topology_shows_every_unit_in_every_form(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "--format", form]) == 0
    out = capsys.readouterr().out
    for unit in ("frontier", "content-seen", "commit", "seen", "records"):
        assert unit in out


def test_the_toml_that_topology_prints_runs(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 2) as web:
        status, out, _ = gossamer("topology", web.url("/"), "--depth", "1", "--format", "toml")
        assert status == 0
        (tmp_path / "my.toml").write_text(out)
        status, out, _ = gossamer("crawl", "--wiring", str(tmp_path / "my.toml"), "-o", str(tmp_path / "c"), "--json")
    assert status == 0
    assert json.loads(out)["pages"] == 3


def test_a_wiring_with_several_mistakes_says_them_all(tmp_path: Path) -> None:
    broken = gossamer("topology", "--format", "toml")[1].replace('use = "frontier"', 'use = "fronteer"')
    broken = broken.replace('inbox = "processed"', 'inbox = "procesed"')
    (tmp_path / "my.toml").write_text(broken)
    status, _, err = gossamer("crawl", "http://127.0.0.1:9/", "--wiring", str(tmp_path / "my.toml"))
    assert status == 2
    assert "did you mean 'frontier'" in err


def test_a_running_crawl_is_steered_by_commands_and_resumed(tmp_path: Path) -> None:
    folder = str(tmp_path / "c")
    with FakeWeb.tree(4, 5, latency=0.005) as web:
        process = start("crawl", web.url("/"), "-o", folder, "--delay", "0", "--json")
        web.wait_for(5)
        status, out, err = gossamer("status", folder, "--json")
        assert (status, err) == (0, "")
        assert json.loads(out)["state"] == "running"
        assert gossamer("pause", folder)[:2] == (
            0,
            "paused: the crawl makes no new requests and finishes those in flight; `gossamer continue DIR` goes on\n",
        )
        assert gossamer("status", folder)[1].startswith(f"{folder}: paused, process {process.pid}\n")
        assert gossamer("set", folder, "concurrency=2", "delay=50ms")[0] == 0
        assert gossamer("set", folder, "concurrency=none")[0] == 2
        assert gossamer("checkpoint", folder, "one")[0] == 0
        assert gossamer("checkpoint", folder, "--list")[1] == "one\n"
        assert gossamer("checkpoint", folder, "--restore", "one")[0] == 2
        assert gossamer("block", folder, "elsewhere.test")[0] == 0
        assert gossamer("why", folder, web.url("/"))[1].startswith(f"{web.url('/')}: it was fetched: ok, status 200")
        assert gossamer("resume", folder)[0] == 5
        assert gossamer("continue", folder)[0] == 0
        assert gossamer("stop", folder)[0] == 0
        assert process.wait(HUNG_AFTER) == 3
        process.communicate()
        status, _, err = gossamer("pause", folder)
        assert (status, err.count("\n")) == (2, 1)
        assert "no crawl is running" in err and "gossamer resume" in err
        assert gossamer("status", folder)[1].startswith(f"{folder}: stopped\n")
        most = json.loads(gossamer("status", folder, "--json")[1])["pages"] + 20
        status, out, _ = gossamer("resume", folder, "--max-pages", str(most), "--delay", "0", "--json")
        told = json.loads(out)
        assert (status, told["state"], told["pages"]) == (0, "limit", most)


def test_a_directory_that_holds_no_crawl_is_refused_by_every_command_in_one_line(tmp_path: Path) -> None:
    for command in ("status", "pause", "stop", "checkpoint", "resume"):
        status, out, err = gossamer(command, str(tmp_path))
        assert (status, out, err.count("\n")) == (2, "", 1), (command, err)
        assert "holds no crawl" in err


def test_a_word_behind_a_directory_names_no_crawl_of_a_cluster(tmp_path: Path) -> None:
    status, _, err = gossamer("search", str(tmp_path), "ray:tracing")
    assert (status, err.count("\n")) == (2, 1)
    assert "holds no crawl" in err
