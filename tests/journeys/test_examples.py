"""Every example runs as its own text says, through a real wiring, and does what it shows."""

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gossamer.storage.members import members_of
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb

EXAMPLES = Path(__file__).parents[2] / "examples"


def output(*command: str | Path) -> list[str]:
    """What a command prints; it must succeed and complain about nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=HUNG_AFTER,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def log(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps({"event": "page", **row}) + "\n" for row in rows), encoding="utf-8")
    return path


def page(url: str, outcome: str = "ok", digest: str = "A", elapsed_ms: float = 5) -> dict[str, object]:
    return {"url": url, "host": url.partition("/")[0], "outcome": outcome, "digest": digest, "elapsed_ms": elapsed_ms}


def test_two_crawls_are_compared_page_by_page(tmp_path: Path) -> None:
    old = log(tmp_path / "old.jsonl", page("a/same"), page("a/gone"), page("a/moved"), page("a/edited", digest="B"))
    new = log(
        tmp_path / "new.jsonl",
        page("a/edited", digest="C"),
        page("a/born"),
        page("a/moved", "redirect"),
        page("a/same"),
        {"event": "item", "url": "a/same", "kind": "x", "data": 1},
    )
    assert output(EXAMPLES / "01-compare-crawls" / "compare.py", old, new) == [
        "new                      a/born",
        "changed                  a/edited",
        "gone                     a/gone",
        "ok -> redirect           a/moved",
    ]


def test_alerts_of_two_kinds_are_merged_and_each_host_is_told_once(tmp_path: Path) -> None:
    crawl = log(
        tmp_path / "crawl.jsonl",
        page("a/1"),
        page("b/1", elapsed_ms=6000),
        page("a/2", "server_error"),
        page("b/2", "timed_out", elapsed_ms=120_000),
        page("c/1", "client_error"),
        page("d/1", "dns_failed"),
    )
    alerts = dict(line.split(": ", 1) for line in output(EXAMPLES / "02-merge-alerts" / "merge.py", crawl))
    assert sorted(alerts) == ["a", "b", "d"]
    assert alerts["a"] == "server_error at a/2"
    assert alerts["b"] in ("6.0 s for b/1", "timed_out at b/2"), "whichever of its inputs came first"
    assert alerts["d"] == "dns_failed at d/1"


def test_a_connector_of_ones_own_is_found_by_its_entry_point_and_orders_items() -> None:
    lines = output(EXAMPLES / "03-own-connector" / "turns.py")
    visits = [line.split()[1] for line in lines if line.startswith("visit")]
    assert visits == ["a.test", "b.test", "c.test"] * 3
    assert len([line for line in lines if line.startswith("report")]) == 9


def test_a_program_of_ones_own_says_what_to_fetch_next(tmp_path: Path) -> None:
    """Two processes that share two sockets; the crawl follows nothing by itself, and ends when the program has enough."""
    pages = {
        "/": '<title>Spiders</title><a href="/orb">x</a><a href="/moth">x</a><a href="/moved">x</a>',
        "/orb": '<title>Orb spiders</title><a href="/">x</a><a href="/silk">x</a>',
        "/moth": '<title>A moth</title><a href="/lamp">not asked for</a>',
        "/moved": FakePage(status=302, headers=(("Location", "/house"),)),
        "/house": '<title>House spider</title><a href="/web">x</a>',
        "/silk": "<title>Silk</title>",
        "/web": "<title>A web</title>",
        "/lamp": "<title>Lamp</title>",
    }
    script = EXAMPLES / "04-own-application" / "application.py"
    with FakeWeb(pages) as web, TemporaryDirectory(prefix="gossamer-") as sockets:
        system = tmp_path / "system.toml"
        system.write_text("\n".join(output(script, "wiring", sockets)), encoding="utf-8")
        command = [sys.executable, "-m", "gossamer", "crawl", web.url("/"), "--wiring", str(system), "--quiet"]
        command += ["--depth", "0", "--scope", "any", "--delay", "0", "-o", str(tmp_path / "crawl")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as crawl:
            lines = output(script, "run", sockets, "spider")
            assert (crawl.wait(HUNG_AFTER), crawl.stderr and crawl.stderr.read()) == (0, "")
        assert sorted(web.targets()) == ["/", "/house", "/moth", "/moved", "/orb", "/silk", "/web"]
        assert len(lines) == 7
        assert f"* ok {web.url('/house')} 'House spider'" in lines
        assert f"  ok {web.url('/moth')} 'A moth'" in lines


@pytest.mark.parametrize("parts", [1, pytest.param(2, marks=pytest.mark.long)])
def test_applications_say_what_several_agents_fetch(parts: int, tmp_path: Path) -> None:
    """Each page of a wanted host leads to the same path of the next host; of the last one nothing is followed."""
    hosts = 6
    pages = {
        f"http://h{host}.test/p{page}": f"<title>{'Spider' if host < hosts - 1 else 'End'}</title>"
        f'<a href="http://h{(host + 1) % hosts}.test/p{page}">x</a><a href="/p{page + 1}">y</a>'
        for host in range(hosts)
        for page in range(5)
    }
    script, directory = EXAMPLES / "04-own-application" / "application.py", tmp_path / "crawl"
    with FakeWeb(pages) as web, TemporaryDirectory(prefix="gossamer-") as sockets, ExitStack() as running:
        system = tmp_path / "system.toml"
        system.write_text("\n".join(output(script, "wiring", sockets, "--parts", str(parts))), encoding="utf-8")
        command = [sys.executable, "-m", "gossamer", "crawl", web.url("http://h0.test/p0"), "--wiring", str(system)]
        command += ["--resolve", web.resolve, "--allow-network", "127.0.0.0/8", "--agents", "2", "--quiet"]
        command += ["--depth", "0", "--scope", "any", "--delay", "0", "-o", str(directory)]
        crawl = running.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        own = ["run", sockets, "spider", "--agents", "2", "--parts", str(parts)]
        lines = [
            running.enter_context(
                subprocess.Popen([sys.executable, script, *own, "--part", str(part)], stdout=subprocess.PIPE, text=True)
            )
            for part in range(parts)
        ]
        if parts > 1:
            while not {f"http://{one.host}{one.target}" for one in tuple(web.requests)} >= pages.keys():
                time.sleep(0.05)
            subprocess.run([sys.executable, "-m", "gossamer", "stop", directory], check=True)
        said = [line for one in lines for line in one.communicate(timeout=HUNG_AFTER)[0].splitlines()]
        assert crawl.wait(HUNG_AFTER) == (3 if parts > 1 else 0), crawl.stderr and crawl.stderr.read()
        asked = sorted(line.split()[-2] for line in said if " ok " in line)
    assert asked == sorted(pages), "each page was seen by one of them, once"
    assert members_of(directory) == ("agent-00", "agent-01")


@pytest.mark.parametrize("kind", ["filter", "synchronous", "semi-synchronous", "asynchronous"])
def test_addresses_of_hosts_are_found_by_a_filter_of_each_kind(kind: str) -> None:
    script = EXAMPLES / "10-host-addresses" / "addresses.py"
    lines = output(script, kind, "http://127.0.0.1/a", "http://127.0.0.2/b")
    assert lines == ["http://127.0.0.1/a 127.0.0.1", "http://127.0.0.2/b 127.0.0.2"]


def test_a_minimal_worker_visits_what_the_shipped_wiring_visits(tmp_path: Path) -> None:
    links = {"/": ["/a", "/b", "http://elsewhere.test/"], "/a": ["/b", "/c?x=1#y"], "/b": ["/"], "/c?x=1": ["/a"]}
    found = []
    for wiring in ([], ["--wiring", str(EXAMPLES / "12-minimal-worker" / "worker.toml")]):
        with FakeWeb.graph(links) as web:
            folder = str(tmp_path / f"crawl-{len(found)}")
            output("-m", "gossamer", "crawl", web.url("/"), "--quiet", "--delay", "0", "-o", folder, *wiring)
            found.append(sorted(web.targets()))
    assert found[0] == found[1] == sorted(links)


def health_site() -> dict[str, FakePage | str]:
    """A clinic: pages about patients, pages about cars, and links that lead away."""
    links = '<a href="/">home</a><a href="/team">team</a><a href="/heart">heart</a>'
    cars = "<p>Cars and gardens, and how to find a place for your car in our garage near the river.</p>"
    heart = "<p>Our doctors and nurses treat patients with heart disease. Health care for patients begins with the doctor.</p>"
    return {
        "/": f"<title>Clinic</title><h1>Welcome</h1>{links}<a href='/parking'>parking</a><p>Health for patients.</p>",
        "/heart": f"<title>Heart disease</title><h1>Heart  disease</h1>{links}<a href='http://who.example/'>w</a>{heart}",
        "/team": f"<title>Team</title>{links}<a href='/nurse'>n</a><p>Medicine and our doctors, our nurses, our hospital.</p>",
        "/nurse": f"<title>Nurse</title><h1>A nurse</h1><p>{'Nurses and doctors care for patients in the hospital. ' * 3}</p>",
        "/parking": f"<title>Parking</title>{links}<a href='/garage'>garage</a>{cars}",
        "/garage": f"<title>Garage</title><p>{'Hospital patients and their doctors park here. ' * 3}</p>",
    }


def test_a_crawler_for_health_care_brings_home_the_relevant_pages_and_the_links_that_lead_away(tmp_path: Path) -> None:
    folder = EXAMPLES / "13-health-care"
    stored, packed = tmp_path / "clinic", tmp_path / "health.crawler"
    with FakeWeb(health_site()) as web:
        given = ["--resolve", web.resolve, "--allow-network", "127.0.0.0/8", "--delay", "0", "--quiet", "-o", stored]
        output("-m", "gossamer", "crawl", "http://clinic.example/", *given)
    command = [sys.executable, "-m", "gossamer", "runtime"]
    serve = [folder / "health.toml", "--serve", f"archive={stored}"]
    done = [
        subprocess.run(
            [*command, *map(str, arguments)], capture_output=True, text=True, timeout=HUNG_AFTER, check=False
        )
        for arguments in (["run", *serve], ["run", *serve, "-o", packed], ["show", packed])
    ]
    assert [one.returncode for one in done] == [0, 0, 0], done
    assert done[1].stdout == "" and done[0].stdout == done[2].stdout
    assert {one.stderr for one in done} == {done[0].stderr}
    assert "5 pages, 3 documents relevant, 2 not, 0 URLs left" in done[0].stderr, (
        "the garage is behind a page about cars"
    )
    lines = [json.loads(line) for line in done[0].stdout.splitlines()]
    pages = {line["url"].removeprefix("http://clinic.example"): line for line in lines if "url" in line}
    assert sorted(pages) == ["/heart", "/nurse", "/team"]
    assert [one["text"] for one in pages["/heart"]["elements"]] == ["Heart disease"]
    assert [line for line in lines if "external" in line] == [{"external": "http://who.example/"}]


@pytest.mark.parametrize("folder", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_every_example_is_listed_and_has_a_test(folder: str) -> None:
    assert f"[{folder}]({folder}" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
    tests = [Path(__file__), Path(__file__).with_name("test_example_packages.py")]
    assert any(f'"{folder}"' in path.read_text(encoding="utf-8") for path in tests)
