"""What a part of a host is, what is suspicious in it, and when it is suspected."""

import asyncio
import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
import pytest

from gossamer.documents.terms import words_of, words_of_urls
from gossamer.frontier.traps.families import depth_of, parts_of, shape_of, shared_beginning, trace
from gossamer.frontier.traps.judging import COMBINATIONS, ENDS, NOTHING_NEW, WINDOW, evidence_of, is_stale
from gossamer.frontier.traps.likeness import LearntTemplates
from gossamer.frontier.traps.memory import GRACE, KEPT_BYTES, PARTS_OF_HOST, TrapPart
from gossamer.frontier.traps.watch import CONFIRMED, LearntTraps, TrapSheet, written
from gossamer.testing.parsing import KNOWN_AFTER, month, months, visit
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Family, Task
from gossamer.values.visit import Response, Visit


@pytest.mark.parametrize(
    ("url", "skipped", "wide", "narrow"),
    [
        ("http://a.test/", 0, "/*", "/"),
        ("http://a.test/calendar/2026/01.html", 0, "/calendar/**", "/calendar/#/*.html"),
        ("http://a.test/session/1a2b3c4d/2.html", 0, "/session/**", "/session/*/*.html"),
        ("http://a.test/shop/list?color=red", 0, "/shop/**", "/shop/list?"),
        ("http://a.test/a/b/c/d/e", 0, "/a/**", "/a/b/**/*"),
        ("http://a.test/srv/docs/a/b/c/d/e", 2, "/srv/docs/a/**", "/srv/docs/a/b/**/*"),
        ("http://a.test/srv/docs/", 2, "/srv/docs/*", "/srv/docs/"),
        ("http://a.test/index.php?x=1&y=2", 0, "/*", "/index.php?"),
        ("http://a.test/SOME/Where.HTML", 0, "/some/**", "/some/*.html"),
        ("http://a.test/123/x.tar.gz", 0, "/#/**", "/#/*.gz"),
    ],
)
def test_a_part_is_the_url_without_what_generates_it(url: str, skipped: int, wide: str, narrow: str) -> None:
    assert parts_of(url, skipped) == (wide, narrow)


def test_parts_have_short_names_whatever_the_url() -> None:
    names = parts_of("http://a.test/" + "x" * 900 + "/" + "y" * 900 + "/z." + "e" * 100 + "?q", 1)
    assert max(map(len, names)) < 250


def test_directories_that_all_pages_share_are_skipped() -> None:
    assert shared_beginning("/a/b/c/", "/a/b/d/e/") == "/a/b/"
    assert shared_beginning("/a/", "/b/") == "/"
    assert (depth_of("/a/b/"), depth_of("/"), depth_of("/x" * 50 + "/")) == (2, 0, 12)


@pytest.mark.parametrize(
    ("url", "is_dated"),
    [
        ("http://a.test/2026/01.html", True),
        ("http://a.test/x/1999/12/31/", True),
        ("http://a.test/events-2026-01/", False),
        ("http://a.test/2026-01-31", True),
        ("http://a.test/c?month=1&year=2026", True),
        ("http://a.test/c?d=20260131", True),
        ("http://a.test/4/4/4/4", False),
        ("http://a.test/item/2026", False),
        ("http://a.test/p?page=12&size=20", False),
    ],
)
def test_dates_are_told_from_numbers(url: str, is_dated: bool) -> None:
    assert trace(url).is_dated is is_dated


def test_words_leave_out_markup_scripts_and_what_urls_are_made_of() -> None:
    page = b"<title>Events of 2026-01</title><a href=/x class=big>Next month abc123def</a><script>var no=1<2</script> <b Monday"
    assert words_of(page) == {b"events", b"of", b"2026", b"01", b"next", b"month", b"abc123def"}
    assert words_of_urls(("http://a.test/Events/%C3%A9t%C3%A9",)) >= {b"events", "été".encode()}


def watch(template: LearntTemplates | None = None, **bounds: int) -> LearntTraps:
    watching = LearntTraps(TrapSheet(**bounds))
    watching.template = template or LearntTemplates()
    return watching


def uncovered(pages: list[tuple[str, str, tuple[str, ...]]], title: str = "A page") -> set[str]:
    """The traps that pages uncover, each given as URL, text and the URLs that are new by it."""
    watching = watch()
    return {watching.observe(visit(url, text, *new, title=title)) for url, text, new in pages} - {""}


def chain(
    pattern: str, text: str = "The same text", most: int = 60, more: str = ""
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Pages that lead each to the next, with the number in their URLs, and perhaps to another."""
    urls = [pattern.format(n=n, month=n % 12 + 1, year=2000 + n // 12, hex=f"{n * 7919:08x}") for n in range(most + 1)]
    return [
        (url, text.format(n=n), (following, *((more.format(n=n),) if more else ())))
        for n, (url, following) in enumerate(pairwise(urls))
    ]


def spelt(number: int) -> str:
    """Words that no other number has."""
    return " ".join(
        f"{letter}{''.join('abcdefghij'[int(digit)] for digit in str(number))}word" for letter in "abcdefgh"
    )


def test_each_trap_is_called_by_its_name() -> None:
    assert uncovered(chain("/c/{year}/{month:02}.html")) == {"trap:calendar"}
    assert uncovered(chain("/s/a{hex}/index.html")) == {"trap:session-ids"}
    assert uncovered(chain("/missing/{hex}.html"), title="404 - Page not found") == {"trap:soft-404"}
    assert uncovered(chain("/x/{hex}")) == {"trap:endless"}
    assert uncovered(chain("/x/{n}", more="/x/9{n}000")) == {"trap:endless"}
    names = ["a", "b", "c", "d", "e"]
    lists = ["/list?" + "&".join(f"{name}={n}" for name in names[n % 4 :] + names[: n % 3]) for n in range(60)]
    assert uncovered([(url, "Products", (following,)) for url, following in pairwise(lists)]) == {"trap:facets"}
    deep = ["/" + "a/b/" * n for n in range(1, 60)]
    watching, found = watch(), set()
    for before, (url, following) in zip(["/", *deep], pairwise(deep), strict=False):
        page = visit(url, "Here", following)
        found.add(
            watching.observe(
                type(page)(Task(page.url, "a.test", 1, f"http://a.test{before}"), page.response, new=page.new)
            )
        )
    assert found == {"", "trap:repeated-segments"}


@pytest.mark.parametrize(
    "pages",
    [
        chain("/{n}.html"),
        chain("/examples/net/daytime{n}/"),
        chain("/examples/net/chapter-{n}.html"),
        chain("/x?page={n}"),
        chain("/x?page={n}&size=20"),
        chain("/" + "deep/" * 15 + "{n}.html"),
        [(url, spelt(n), new) for n, (url, _, new) in enumerate(chain("/c/{year}/{month:02}.html"))],
        [(url, spelt(n), new) for n, (url, _, new) in enumerate(chain("/x/{hex}", more="/x/0{n}ff"))],
        [(url, text, ()) for url, text, _ in chain("/c/{year}/{month:02}.html")],
    ],
    ids=["numbers", "directories", "chapters", "pages", "sizes", "deep", "news", "growing news", "leaves"],
)
def test_dull_sites_and_archives_with_news_are_none(pages: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert uncovered(pages) == set()


def growing(text: Callable[[int], str]) -> set[str]:
    """The traps that a part is which grows without end, its pages having these texts."""
    return uncovered([(url, text(n), new) for n, (url, _, new) in enumerate(chain("/x/{hex}", more="/x/0{n}ff"))])


def test_new_text_of_old_words_is_news_and_a_list_in_another_order_is_none() -> None:
    words = spelt(1).split() + spelt(2).split() + spelt(3).split() + spelt(4).split()

    def shuffled(seed: int, items: list[str]) -> list[str]:
        return random.Random(seed).sample(items, len(items))

    items = [f"<li>{' '.join(words[n : n + 4])}</li>" for n in range(0, len(words), 2)]
    assert growing(lambda n: " ".join(shuffled(n, words * 3))) == set()
    assert growing(lambda n: "".join(shuffled(n, items))) == {"trap:endless"}
    assert growing(lambda n: f"{' '.join(words)} page {n} of {n * 7}") == {"trap:endless"}, "a form"
    assert growing(lambda n: f"{' '.join(words)} <b>{n}</b> {n % 31} {n % 12}") == {"trap:endless"}, "numbers"


@pytest.mark.parametrize(
    ("pages", "news", "since", "expected"),
    [
        (24, 0, 24, True),
        (24, 2, 5, True),
        (120, 7, 24, False),
        (1_500, 100, 60, False),
        (1_500, 1_400, 24, True),
        (60, 1, 47, False),
        (60, 1, 48, True),
    ],
)
def test_a_lack_of_news_says_something_once_the_life_of_a_part_makes_it_unlikely(
    pages: int, news: int, since: int, expected: bool
) -> None:
    window = bytearray([NOTHING_NEW] * WINDOW)
    window[: max(0, WINDOW - since)] = bytes(min(news, max(0, WINDOW - since), 2)).ljust(
        max(0, WINDOW - since), bytes([NOTHING_NEW])
    )
    assert is_stale(TrapPart(window=window, pages=pages, news=news, since=since)) is expected


def test_copies_show_the_kind_of_page_that_they_are() -> None:
    """The first page of a trap that is no copy of another says nothing new by that."""
    watching, copies = watch(), []
    for url, _, new in chain("/x/{hex}", more="/x/0{n}ff"):
        page = visit(url, "The list", *new)
        copies.append(msgspec.structs.replace(page, duplicate_of="http://a.test/x/1") if copies else page)
    assert {watching.observe(page) for page in copies} == {"", "trap:endless"}
    first = visit("/x/77aa", "The list 77", "/x/88aa")
    assert aside(watching, list(first.new))
    watching.observe(first)
    assert aside(watching, list(first.new))


def suspecting(**bounds: int) -> LearntTraps:
    """One that has found a calendar out."""
    watching = watch(**bounds)
    assert {watching.observe(month(number)) for number in range(GRACE + WINDOW + 1)} == {"", "trap:calendar"}
    return watching


def aside(watching: LearntTraps, tasks: list[Task]) -> list[Family]:
    return [family for family in watching.place("schedule", tasks) if family is not None]


def test_a_suspected_part_is_known_within_fifty_pages_and_named_with_evidence() -> None:
    watching = suspecting()
    assert GRACE + WINDOW + 1 < 50
    [family] = set(aside(watching, months(100, 50)))
    assert (family.owner, family.why) == ("a.test", "trap:calendar")
    assert f"{WINDOW} of the last {WINDOW} pages had no text of their own" in evidence_of(
        kept(watching)["a.test"], family
    )


def test_a_probe_with_news_frees_all() -> None:
    watching = suspecting()
    tasks = months(1000, 500)
    assert len(aside(watching, tasks)) == 500
    watching.observe(month(200, spelt(200)))
    assert aside(watching, tasks) == []
    freed = watching.returning()
    assert {family.part for family in freed} == {"/events/#/**", "/events/#/*.html"}
    assert watching.returning() == []
    known = kept(watching)["a.test"]
    assert all("trusted" in evidence_of(known, family) for family in freed)


def test_probes_that_lead_nowhere_free_all_since_the_part_ends() -> None:
    watching = suspecting()
    for number in range(ENDS):
        assert len(aside(watching, months(1000, 5))) == 5
        watching.observe(visit(f"/events/3000/{number + 1:02}.html", "Events of the month"))
    assert aside(watching, months(1000, 5)) == []


def test_answers_for_robots_txt_end_no_domain_that_invents_its_hosts() -> None:
    def page(number: int) -> Visit:
        new = tuple(
            Task(f"http://h{n:x}.trap.test/", f"h{n:x}.trap.test", 1, relation="a href")
            for n in (number * 7919, number * 104729)
        )
        host = f"h{number:x}.trap.test"
        response = Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=b"<p>Welcome, friends")
        return Visit(Task(f"http://{host}/", host), response, title="A page", new=new)

    watching = watch()
    assert {watching.observe(page(number)) for number in range(1, GRACE + WINDOW + 1)} == {"", "trap:wildcard-names"}
    for number in range(10 * ENDS):
        host = f"h{number:x}.trap.test"
        robots = Task(f"http://{host}/robots.txt", host, relation=ROBOTS)
        watching.observe(Visit(robots, Response(Outcome.CLIENT_ERROR, 404)))
    assert len(aside(watching, list(page(5000).new))) == 2


def test_memory_is_bounded_and_what_is_forgotten_is_trusted() -> None:
    watching = suspecting(families=6, hosts=2)
    assert aside(watching, months(100, 20))
    for number in range(5):
        page = visit(f"/other{number}/2000/01.html", "x", f"/other{number}/2000/02.html")
        watching.observe(
            type(page)(Task(page.url.replace("a.test", f"h{number}.test"), f"h{number}.test"), page.response)
        )
    assert watching.metrics.snapshot()["families"] <= 6
    assert not aside(watching, months(100, 20))


def test_a_seed_is_never_set_aside() -> None:
    watching = suspecting()
    assert not aside(watching, [Task(task.url, task.host) for task in months(100, 50)])


def decided(watching: LearntTraps, **decisions: tuple[str, ...]) -> None:
    before = watching.sheet
    watching.sheet = msgspec.structs.replace(before, **{"confirmed": (), "released": (), **decisions})
    watching.changed(before)


def test_what_a_person_says_wins_over_what_is_guessed() -> None:
    watching = suspecting()
    [family] = set(aside(watching, months(100, 5)))
    decided(watching, released=(written(family),))
    assert not watching.is_suspect(family)
    assert not aside(watching, months(100, 5))
    decided(watching, confirmed=(written(family),))
    assert not aside(watching, months(100, 5)), "what a person has confirmed is refused"
    assert watching.judge_tasks("schedule", [*months(5000, 1), Task("http://a.test/news/1", "a.test")]) == [
        CONFIRMED,
        "",
    ]
    assert watching.is_confirmed(family)


def test_shapes_are_named() -> None:
    source = "http://a.test/a/b/a/b/"
    assert shape_of("http://a.test/a/b/a/b/a/", source) == "trap:repeated-segments"
    assert shape_of("http://a.test/a/b/a/c/", source) == ""
    assert shape_of("http://a.test/a/a/a/a/", "http://a.test/") == "", "from elsewhere it may be a page"
    assert shape_of("http://a.test/4/4/4/4/4", "http://a.test/4/4/4/4") == "", "numbers may repeat"
    assert shape_of("http://a.test/" + "/".join(f"d{n}" for n in range(40)), "http://a.test/") == "", (
        "depth says nothing"
    )
    queries = ("c=1&c=2&c=3", "c[]=1&c[]=2&c[]=3", "c%5B%5D=1&c%5B%5D=1&c%5B%5D=1")
    assert [shape_of(f"http://a.test/?{query}", "http://a.test/") for query in queries] == [
        "trap:repeated-parameters",
        "",
        "",
    ]


def test_a_shape_sets_aside_and_news_free_it() -> None:
    watching = watch()
    tasks = [
        Task(f"http://a.test/?c=1&c=2&c={n}", "a.test", source="http://a.test/", relation="a href") for n in range(9)
    ]
    assert {family.part for family in aside(watching, tasks)} == {"repeated-parameters"}
    for number, expected in enumerate((9, 0)):
        # The first page of a host has nothing to differ from.
        page = visit(f"/?c=1&c=2&c={number}", spelt(number))
        watching.observe(type(page)(tasks[number], page.response))
        assert len(aside(watching, tasks)) == expected


def test_combinations_that_decide_are_more_than_sorting_and_paging_make() -> None:
    assert len({("sort", "page"), ("page", "sort"), ("sort", "order", "page")}) < COMBINATIONS


def kept(watching: LearntTraps) -> dict[str, bytes]:
    return {one.host: one.data for one in watching.learnt()}


def going_on(records: dict[str, bytes], template: LearntTemplates | None = None, **bounds: int) -> LearntTraps:
    """One that finds these records where another would find the ledger."""
    watching = watch(template, **bounds)
    watching.go_on(lambda hosts: [records.get(host) for host in hosts], is_known=bool(records))
    return watching


def test_a_suspicion_holds_for_who_goes_on_and_news_still_end_it() -> None:
    template = LearntTemplates()
    first = watch(template)
    for number in range(GRACE + WINDOW + 1):
        first.observe(month(number))
    tasks = months(1000, 500)
    second = going_on(kept(first), template)
    assert second.place("schedule", tasks) == first.place("schedule", tasks)
    assert second.observe(month(30, spelt(30))) == "", "what was found is not found again"
    assert not aside(second, tasks)


def test_nothing_is_kept_of_pages_that_lead_to_nothing_and_nothing_twice() -> None:
    watching = watch()
    watching.observe(visit("/page.html", "text"))
    assert kept(watching) == {}
    watching.observe(month(1))
    assert list(kept(watching)) == ["a.test"]
    assert kept(watching) == {}


def test_what_is_kept_of_a_host_is_bounded_and_begins_with_what_is_suspected() -> None:
    watching = suspecting()
    for number in range(PARTS_OF_HOST * 2):
        long = spelt(number).replace(" ", "-")[:80]
        watching.observe(visit(f"/{long}/{long}/1.html", "text", f"/{long}/{long}/2.html"))
    [(host, record)] = kept(watching).items()
    assert host == "a.test" and len(record) <= KEPT_BYTES
    assert watching.metrics.snapshot()["families"] == PARTS_OF_HOST
    assert aside(going_on({"a.test": record}), months(1000, 5))


def test_a_record_of_somebody_else_is_none() -> None:
    [record] = kept(suspecting()).values()
    for strange in (b"", b"\xc1", b"\x80", record[:-3], b"\x81\xa1/\xc4\x02xx"):
        watching = going_on({"a.test": strange})
        assert watching.place("schedule", months(1, 3)) == [None] * 3
        assert watching.observe(month(2)) == ""


def test_hosts_that_left_the_memory_are_recalled() -> None:
    records: dict[str, bytes] = {}
    watching = going_on(records, hosts=2)
    for number in range(GRACE + WINDOW + 1):
        watching.observe(month(number))
    records |= kept(watching)
    for host in ("b.test", "c.test", "d.test"):
        page = visit("/", "x")
        watching.observe(type(page)(Task(f"http://{host}/", host), page.response))
    assert aside(watching, months(100, 20))


@pytest.mark.parametrize("is_released", [True, False])
def test_a_family_that_the_settings_release_is_never_suspected(is_released: bool) -> None:
    suspected = suspecting()
    [family] = set(aside(suspected, months(100, 5)))
    traps = LearntTraps(TrapSheet(released=(written(family),) if is_released else ()))
    traps.template = LearntTemplates()
    traps.ledger = Forgetful()  # type: ignore[assignment]  # of which two methods are asked
    asyncio.run(traps.start())
    for number in range(KNOWN_AFTER):
        traps.observe(month(number))
    assert any(traps.place("schedule", months(100, 5))) is not is_released


class Forgetful:
    """A ledger in which nothing was learnt."""

    def counters(self) -> dict[str, int]:
        return {}

    def learnt(self, hosts: Sequence[str], what: str) -> list[None]:
        return [None] * len(hosts)
