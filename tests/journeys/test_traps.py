"""Traps on whole crawls: real ones are set aside within fifty pages, honest sites are fetched to the last page."""

import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sampling import sampled

from gossamer.analysis.why import story_of
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.crawls.trap_review import decide_at_rest, suspicions_of
from gossamer.engine.sheet import build
from gossamer.frontier.termination import LAST, SHARE
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.errors import UsageError
from gossamer.values.url import path_of

NO_ROBOTS = FakePage("", status=404)

#: fault 40: pages of a trap before it is set aside.
KNOWN_AFTER = 50


def crawled(web: FakeWeb, folder: Path, **options: object) -> tuple[Summary, list[str]]:
    """The summary of a crawl from `/`, and the targets of its requests but for robots.txt."""
    given = {"output": str(folder / "c"), "delay": 0, "min_free_disk": 0, **options}
    summary = run(Crawl([web.url("/")], build(all_options(), given), tables=False))
    return summary, [request.target for request in web.requests if request.target != "/robots.txt"]


def page(text: str, *links: str, title: str = "A page") -> str:
    anchors = "".join(f'<li><a href="{link}">more</a></li>' for link in links)
    return f"<html><title>{title}</title><p>{text}</p><ul>{anchors}</ul></html>"


WORDS = [f"{one}{two}{three}" for one in "bdfgklm" for two in "aeiou" for three in ("ran", "tel", "sto", "min", "var")]


def words(seed: object, count: int) -> list[str]:
    return random.Random(str(seed)).sample(WORDS, count)


NAVIGATION = " ".join(f"nav{first}{second}" for first in WORDS[:25] for second in WORDS[:20])


def neighbours(number: int, count: int, reach: int = 5) -> range:
    return range(max(0, number - reach), min(count, number + reach + 1))


# -- honest sites


@pytest.mark.parametrize(("depth", "own"), [(1, 5), (7, 5), (12, 5), (1, 20), (12, 60)])
def test_pages_with_a_long_navigation_and_a_few_words_of_their_own_are_all_fetched(
    tmp_path: Path, depth: int, own: int
) -> None:
    folder = "/" + "/".join(f"s{letter}" for letter in "abcdefghijklm"[:depth])
    pages = {
        f"{folder}/p{number}.html": page(
            f"{NAVIGATION} {' '.join(words(number, own))}", *(f"p{other}.html" for other in neighbours(number, 300))
        )
        for number in range(300)
    }
    with FakeWeb({"/": page("Home", f"{folder}/p0.html"), **pages}) as web:
        summary, targets = crawled(web, tmp_path)
    assert (len(set(targets)), summary.state, summary.set_aside) == (301, "finished", 0)


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("chain", "Error 404 number {}"),
        ("index", "Error 404 number {}"),
        *(
            pytest.param("neighbours", title, marks=pytest.mark.long)
            for title in ("Peugeot 404 spare part {}", "Room 404, floor {}", "Item not found {}", "Error 404 number {}")
        ),
    ],
)
def test_a_title_is_no_evidence(tmp_path: Path, kind: str, title: str) -> None:
    """Pages that say their title and nothing else."""
    count = 600
    reach = {"chain": 1, "neighbours": 5, "index": 0}[kind]
    pages = {
        f"/item/{number}.html": page(
            title.format(number),
            *(f"{other}.html" for other in neighbours(number, count, reach)),
            title=title.format(number),
        )
        for number in range(count)
    }
    first = [f"/item/{number}.html" for number in range(count if kind == "index" else 1)]
    with FakeWeb({"/": page("Home", *first), **pages}) as web:
        summary, targets = crawled(web, tmp_path)
    assert (len(set(targets)), summary.set_aside) == (count + 1, 0)


def test_a_tree_of_equal_pages_is_fetched_to_its_last_leaf(tmp_path: Path) -> None:
    """It grows like a trap, so it is set aside; its newest URLs show that it ends."""
    web = FakeWeb.tree(5, 4)
    with web:
        summary, targets = crawled(web, tmp_path)
    assert {web.url(target) for target in targets} == set(web.expected)
    assert summary.set_aside == 0


# -- traps


def number_of(target: str, salt: str = "") -> int:
    return zlib.crc32(f"{target}{salt}".encode())


def not_found(request: FakeRequest) -> str:
    here = number_of(request.target)
    return page("Sorry, there is nothing here.", f"/old/{here}.html", f"/old/{here // 3}.html", title="Page not found")


def hexadecimal(request: FakeRequest) -> str:
    links = (f"/{number_of(request.target, str(n)):08x}{number_of(request.target, f'-{n}'):08x}" for n in range(3))
    return page("Welcome to the archive of everything.", *links)


def one_hexadecimal(request: FakeRequest) -> str:
    return page("Welcome to the archive of everything.", f"/x/{number_of(request.target):08x}")


def word_paths(request: FakeRequest) -> str:
    links = ("/" + "/".join(words((request.target, n), 1 + n)) for n in range(1, 5))
    return page("Welcome to the archive of everything.", *links)


def other_case(request: FakeRequest) -> str:
    letters = list("/spellings/of/one/document.html")
    links = []
    for n in range(3):
        place = number_of(request.target, str(n)) % len(letters)
        text = list(request.target if len(request.target) == len(letters) else letters)
        text[place] = text[place].swapcase()
        links.append("".join(text))
    return page("One document, whatever the case of its letters.", *links)


def reloading(request: FakeRequest) -> str:
    number = int(request.target.partition("?")[2] or 0)
    return f'<meta http-equiv=refresh content="0; url=/wait?{number + 1}"><p>One moment, please.'


def calendar(request: FakeRequest) -> str:
    _, _, year, month = request.target.removesuffix(".html").split("/")
    here = int(year) * 12 + int(month) - 1
    links = (f"/calendar/{n // 12}/{n % 12 + 1:02}.html" for n in (here - 1, here + 1, here + 12))
    return page("Nothing happens this month.", *links)


def loop(request: FakeRequest) -> str:
    return page("A directory", "a/", "b/", "a/b/")


def sessions(request: FakeRequest) -> str:
    fresh = f"{number_of(request.target):08x}"
    return page("Your visit to our shop", *(f"/visit/{fresh}/{number}.html" for number in range(5)))


def facets(request: FakeRequest) -> str:
    query = request.target.partition("?")[2]
    return page(
        "Products that you may like",
        *(f"/shop?{query}&{name}={n}" for name in ("size", "color", "brand") for n in "123"),
    )


TRAPS: dict[str, tuple[Callable[[FakeRequest], str], str]] = {
    "soft 404": (not_found, "/old/1.html"),
    "hexadecimal names": (hexadecimal, "/start"),
    "one hexadecimal name": (one_hexadecimal, "/x/start"),
    "paths of words": (word_paths, "/some/where"),
    "spellings": (other_case, "/spellings/of/one/document.html"),
    "reloads": (reloading, "/wait?0"),
    "calendar": (calendar, "/calendar/2026/01.html"),
    "loop": (loop, "/loop/a/"),
    "sessions": (sessions, "/visit/1a2b3c4d/1.html"),
    "facets": (facets, "/shop?size=1"),
}

#: Pages of an honest part of a site that has a trap.
HONEST = 260


@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.parametrize("per_host", sampled([1, 8], 2))
def test_a_trap_is_set_aside_within_fifty_pages_and_the_crawl_ends(tmp_path: Path, name: str, per_host: int) -> None:
    trap, entry = TRAPS[name]
    honest = {
        f"/news/{n}.html": page(" ".join(words(n, 12)), *(f"{n + step}.html" for step in (1, 2) if n + step < HONEST))
        for n in range(HONEST)
    }
    pages = {"/": page("Home", entry, "/news/0.html"), "/robots.txt": NO_ROBOTS, **honest}
    with FakeWeb(pages, otherwise=trap) as web:
        summary, targets = crawled(web, tmp_path, per_host=per_host)
    trapped = [target for target in targets if target not in honest and target != "/"]
    assert set(honest) <= set(targets), "a page of the honest part is lost"
    assert summary.state == "finished" and summary.exit_code == 0
    assert summary.set_aside > 0
    with RocksLedger(LedgerSheet(directory=str(tmp_path / "c"))).looking() as ledger:
        last = [row.last_probes for row in ledger.aside()]
    assert max(last) <= LAST
    assert len(trapped) <= KNOWN_AFTER + len(targets) / SHARE + sum(last)


def test_names_that_a_domain_invents_are_set_aside_together(tmp_path: Path) -> None:
    def anybody(request: FakeRequest) -> str:
        links = (f"http://h{number_of(request.host, str(n)):x}.trap.test/" for n in range(4))
        return page("Welcome to our network of friends.", *links)

    with FakeWeb(
        {"http://start.test/": page("Home", "http://a.trap.test/"), "/robots.txt": NO_ROBOTS}, otherwise=anybody
    ) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "domain_delay": 0, "ip_delay": 0, "scope": "any"}
        given = {**options, "resolve": [web.resolve], "allow_network": ["127.0.0.0/8"], "min_free_disk": 0}
        summary = run(Crawl(["http://start.test/"], build(all_options(), given), tables=False))
        hosts = {request.host for request in web.requests if request.target != "/robots.txt"}
    assert len(hosts) <= KNOWN_AFTER + LAST + 1
    assert (summary.state, summary.set_aside > 50) == ("finished", True)


def test_news_behind_a_probe_free_all_that_was_set_aside(tmp_path: Path) -> None:
    """An archive whose first months are empty: the later ones are not, and are found by a probe."""

    def month(number: int) -> str:
        text = "Nothing happens this month." if number < 90 else " ".join(words(number, 15))
        later = (number + step for step in (1, 2, 12) if number + step < 200)
        return page(text, *(f"/c/{2000 + n // 12}/{n % 12 + 1:02}.html" for n in later))

    pages = {f"/c/{2000 + n // 12}/{n % 12 + 1:02}.html": month(n) for n in range(200)}
    with FakeWeb({"/": page("Home", "/c/2000/01.html"), **pages}) as web:
        summary, targets = crawled(web, tmp_path)
    assert set(targets) == {"/", *pages}
    assert summary.set_aside == 0


def endless(request: FakeRequest) -> str | FakePage:
    """Pages with invented numbers, each of which leads to three more."""
    if not request.target.startswith("/c/"):
        return FakePage("", status=404)
    number = int(request.target.removesuffix(".html").rpartition("/")[2])
    links = (f"/c/x/{number * 7919 % 10**9 + step * 10**7}.html" for step in range(3))
    return page("Nothing happens here.", *links)


def set_aside(folder: Path) -> dict[str, list[str]]:
    """URLs that are set aside, by the identifier of their family."""
    with RocksLedger(LedgerSheet(directory=str(folder / "c"))).looking() as ledger:
        rows = [row for row in ledger.aside() if row.count]
        found = {row.family.id: [task.url for task in ledger.aside_tasks(row.family)] for row in rows}
        assert {row.family.id: row.count for row in rows} == {name: len(urls) for name, urls in found.items()}
        assert ledger.counters()["set_aside"] == sum(map(len, found.values()))
    return found


def test_what_is_set_aside_is_told_and_fetched_when_a_person_says_so(tmp_path: Path) -> None:
    told: list[str] = []
    with FakeWeb({"/": page("Home", "/c/1.html")}, otherwise=endless) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "min_free_disk": 0}
        summary = run(Crawl([web.url("/")], build(all_options(), options), report=told.append, tables=False))
        aside = set_aside(tmp_path)
        [name] = aside
        assert summary.set_aside == len(aside[name]) > 0
        [line] = [line for line in told if "set aside" in line]
        assert str(summary.set_aside) in line and f"--release {name}" in line and "trap:endless" in line
        listed = suspicions_of(tmp_path / "c")
        assert [(one.id, one.state, one.set_aside) for one in listed.families] == [
            (name, "suspected", summary.set_aside)
        ]
        assert "had no text of their own" in listed.families[0].evidence and listed.families[0].samples
        known = story_of(tmp_path / "c", aside[name][0])
        assert known.state == "set_aside" and f"--release {name}" in known.told
        with pytest.raises(UsageError, match="nothing is set aside under"):
            Crawl([], build(all_options(), {**options, "resume": True, "release": ["0000000000"]}), tables=False)
        web.otherwise = page("Nothing happens here.")  # it ends after all
        again = run(Crawl([], build(all_options(), {**options, "resume": True, "release": [name]}), tables=False))
        targets = set(web.targets())
    assert (again.state, again.set_aside) == ("finished", 0)
    assert [(one.state, one.evidence) for one in suspicions_of(tmp_path / "c").families] == [
        ("released", "a person has released it")
    ]
    left = {path_of(url) for url in aside[name]} - targets
    assert not left, f"{len(left)} of {len(aside[name])} that were released are not fetched; {again}"


def test_what_a_person_confirms_is_refused_and_no_probe_is_sent(tmp_path: Path) -> None:
    with FakeWeb({"/": page("Home", "/c/1.html")}, otherwise=endless) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "min_free_disk": 0}
        run(Crawl([web.url("/")], build(all_options(), options), tables=False))
        aside = set_aside(tmp_path)
        decide_at_rest(tmp_path / "c", list(aside), [])
        before = len(web.requests)
        summary = run(Crawl([], build(all_options(), {**options, "resume": True}), tables=False))
        assert len(web.requests) == before, "a URL of a confirmed trap was asked for"
        story = story_of(tmp_path / "c", aside[next(iter(aside))][0])
    assert summary.set_aside == 0
    assert {one.verdict for one in story.filters if one.filter == "traps"} == {"trap:confirmed"}
    assert [one.state for one in suspicions_of(tmp_path / "c").families] == ["confirmed"]


def test_what_is_set_aside_survives_a_kill(tmp_path: Path) -> None:
    """What was set aside when the process died is still there, and each URL of the crawl is in one place."""
    honest = {f"/n/{n}.html": FakePage(page(" ".join(words(n, 12)), f"{n + 1}.html"), latency=0.01) for n in range(120)}
    directory = tmp_path / "c"
    command = [sys.executable, "-m", "gossamer", "crawl", "-o", str(directory), "--delay", "0", "--json"]
    with FakeWeb({"/": page("Home", "/c/1.html", "/n/0.html"), **honest}, otherwise=endless) as web:
        process = subprocess.Popen([*command, web.url("/")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        web.wait_for(120)
        process.kill()
        process.communicate()
        before = {url for urls in set_aside(tmp_path).values() for url in urls}
        summary = run(Crawl([], build(all_options(), {"output": str(directory), "resume": True}), tables=False))
        fetched = {web.url(target) for target in web.targets()}
    after = {url for urls in set_aside(tmp_path).values() for url in urls}
    assert before, "killed at another moment"
    assert before <= after | fetched
    assert not after & fetched, "what was fetched is set aside"
    assert {web.url(target) for target in honest} <= fetched
    assert summary.set_aside == len(after)
