"""What a family is, what is suspicious in it, and when it is cut."""

from itertools import count, pairwise

import pytest

from gossamer.model.task import Task
from gossamer.model.visit import Link
from gossamer.services.traps.families import trace
from gossamer.services.traps.memory import FAMILIES_OF_HOST, KEPT_BYTES
from gossamer.services.traps.novelty import Sketch, words
from gossamer.services.traps.watch import COMBINATIONS, CUT_AGAIN, MOST_CUTS, RESTORE, WINDOW, TrapWatch
from gossamer.stages.url_filter.traps import TrapShapes
from gossamer.testing.trapping import month, months, visit


@pytest.mark.parametrize(
    ("url", "family"),
    [
        ("http://a.test/", "/"),
        ("http://a.test/calendar/2026/01.html", "/calendar/#/.html"),
        ("http://a.test/session/1a2b3c4d/2.html", "/session/*/.html"),
        ("http://a.test/shop/list?color=red", "/shop/list?"),
        ("http://a.test/a/b/c/d/e", "/a/b/"),
        ("http://a.test/index.php?x=1&y=2", "/index.php?"),
        ("http://a.test/123/x.tar.gz", "/#/.gz"),
    ],
)
def test_a_family_is_the_url_without_what_generates_it(url: str, family: str) -> None:
    assert trace(url).family == family


def test_families_have_short_names_whatever_the_url() -> None:
    assert len(trace("http://a.test/" + "x" * 900 + "/" + "y" * 900 + "/z." + "e" * 100 + "?q").family) < 200


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


def test_words_leave_out_markup_numbers_and_the_url_itself() -> None:
    page = b"<title>Events of 2026-01</title><a href=/x class=big>Next month abc123def</a> <b Monday"
    assert words(page, "http://a.test/events") == {b"next", b"month"}


def test_a_sketch_forgets_rather_than_calling_everything_seen() -> None:
    sketch = Sketch()
    fresh = [sketch.is_new([b"%dword%d" % (n, k) for k in range(20)]) for n in range(500)]
    assert all(fresh)


def uncovered(pages: list[tuple[str, str, str]], title: str = "A page") -> set[str]:
    """The traps that pages uncover, each given as URL, text and the URL that is new by it."""
    watch = TrapWatch()
    return {watch.observe(visit(url, text, new, title=title)) for url, text, new in pages} - {""}


def chain(pattern: str, text: str = "The same text", most: int = 60) -> list[tuple[str, str, str]]:
    """Pages that lead each to the next, with the number in their URLs."""
    urls = [pattern.format(n=n, month=n % 12 + 1, year=2000 + n // 12, hex=f"{n * 7919:08x}") for n in range(most + 1)]
    return [(url, text.format(n=n), following) for n, (url, following) in enumerate(pairwise(urls))]


def test_each_trap_is_called_by_its_name() -> None:
    assert uncovered(chain("/c/{year}/{month:02}.html")) == {"trap:calendar"}
    assert uncovered(chain("/s/a{hex}/index.html")) == {"trap:session-ids"}
    assert uncovered(chain("/missing/{n}.html"), title="404 - Page not found") == {"trap:soft-404"}
    names = ["a", "b", "c", "d", "e"]
    lists = ["/list?" + "&".join(f"{name}={n}" for name in names[n % 4 :] + names[: n % 3]) for n in range(60)]
    assert uncovered([(url, "Products", following) for url, following in pairwise(lists)]) == {"trap:facets"}
    deep = ["/" + "/".join(f"d{k}" for k in range(n)) + "/" for n in range(1, 60)]
    watch = TrapWatch()
    found = set()
    for url, following in pairwise(deep):
        page = visit(url, "The same text", following)
        task = Task(page.url, "a.test", 1, f"http://a.test{url.rsplit('/', 2)[0]}/", "a href")
        found.add(watch.observe(type(page)(task, page.response, title="A page", new=page.new)))
    assert found == {"", "trap:growing-path"}


def spelt(number: int) -> str:
    """Words that no other number has."""
    return " ".join(
        f"{letter}{''.join('abcdefghij'[int(digit)] for digit in str(number))}word" for letter in "abcdefgh"
    )


@pytest.mark.parametrize(
    "pages",
    [
        chain("/{n}.html"),
        chain("/item/{hex}"),
        chain("/examples/net/daytime{n}/"),
        chain("/examples/net/chapter-{n}/index.html"),
        chain("/x?page={n}"),
        chain("/x?page={n}&size=20"),
        chain("/c/{year}/{month:02}.html", text="news {n}"),
        [(url, spelt(n), new) for n, (url, _, new) in enumerate(chain("/c/{year}/{month:02}.html"))],
        [(url, text, "/elsewhere") for url, text, _ in chain("/c/{year}/{month:02}.html")],
    ],
    ids=["numbers", "digests", "directories", "chapters", "pages", "sizes", "numbered", "news", "leaves"],
)
def test_dull_sites_and_archives_with_news_are_none(
    pages: list[tuple[str, str, str]], request: pytest.FixtureRequest
) -> None:
    expected = {"trap:calendar"} if request.node.callspec.id == "numbered" else set()
    assert uncovered(pages) == expected, "numbers are no news; words are, and what does not feed itself ends"


def test_a_trap_is_cut_tenfold_again_and_again_and_a_trickle_is_left() -> None:
    watch = TrapWatch()
    numbers = count()
    while not watch.observe(month(next(numbers))):
        pass
    assert next(numbers) <= WINDOW + 2
    passing = []
    tasks = months(1000, 100_000 // 12)
    for _ in range(MOST_CUTS + 1):
        passing.append(watch.judge(tasks).count(""))
        for _ in range(CUT_AGAIN):
            watch.observe(month(next(numbers)))
    assert all(later * 5 < earlier for earlier, later in pairwise(passing[:3]))
    assert passing[MOST_CUTS - 1] == passing[MOST_CUTS]


def test_news_give_the_budget_back_step_by_step() -> None:
    watch = TrapWatch()
    for number in range(WINDOW + 2):
        watch.observe(month(number))
    tasks = months(1000, 500)
    cut = watch.judge(tasks).count("")
    for number in range(RESTORE):
        watch.observe(month(200 + number, spelt(number)))
    assert cut < 100
    assert watch.judge(tasks).count("") == 500
    assert "no longer cut" in watch.story("a.test", tasks[0].url)


def test_memory_is_bounded_and_what_is_forgotten_is_trusted() -> None:
    watch = TrapWatch(families=3, hosts=2)
    for number in range(WINDOW + 2):
        watch.observe(month(number))
    assert any(watch.judge(months(100, 20)))
    for number in range(5):
        watch.observe(visit(f"/other{number}/2000/01.html", "x"))
    assert len(watch) == 3
    assert not any(watch.judge(months(100, 20)))


def test_a_seed_is_never_cut() -> None:
    watch = TrapWatch()
    for number in range(WINDOW + 2):
        watch.observe(month(number))
    tasks = months(100, 50)
    seeds = [Task(task.url, task.host) for task in tasks]
    assert not any(watch.judge(seeds))


def refusals(source: str, *urls: str) -> list[str]:
    return list(TrapShapes().judge([Link(url) for url in urls], Task(source, "a.test")))


def test_shapes_are_named() -> None:
    assert refusals("http://a.test/a/b/a/b/", "http://a.test/a/b/a/b/a/", "http://a.test/a/b/a/c/") == [
        "trap:repeated-segments",
        "",
    ]
    assert refusals("http://a.test/", "http://a.test/a/a/a/a/") == [""], "from elsewhere it may be a page"
    assert refusals("http://a.test/4/4/4/4", "http://a.test/4/4/4/4/4") == [""], "numbers may repeat"
    assert refusals("http://a.test/", "http://a.test/" + "/".join(f"d{n}" for n in range(21))) == ["trap:deep-path"]
    queries = ("c=1&c=2&c=3", "c[]=1&c[]=2&c[]=3", "c%5B%5D=1&c%5B%5D=1&c%5B%5D=1")
    assert refusals("http://a.test/", *(f"http://a.test/?{query}" for query in queries)) == [
        "trap:repeated-parameters",
        "",
        "",
    ]


def test_combinations_that_decide_are_more_than_sorting_and_paging_make() -> None:
    assert len({("sort", "page"), ("page", "sort"), ("sort", "order", "page")}) < COMBINATIONS


def kept(watch: TrapWatch) -> dict[str, bytes]:
    return {one.host: one.data for one in watch.learnt()}


def going_on(records: dict[str, bytes], **bounds: int) -> TrapWatch:
    """One that finds these records where another would find the ledger."""
    watch = TrapWatch(**bounds)
    watch.go_on(lambda hosts: [records.get(host) for host in hosts], is_known=bool(records), has_found=True)
    return watch


def test_a_verdict_holds_for_who_goes_on_and_news_still_take_it_back() -> None:
    first = TrapWatch()
    for number in range(WINDOW + 2):
        first.observe(month(number))
    tasks = months(1000, 500)
    second = going_on(kept(first))
    assert second.judge(tasks) == first.judge(tasks)
    assert second.story("a.test", tasks[0].url) == first.story("a.test", tasks[0].url)
    assert second.observe(month(30)) == "", "what was found is not found again"
    for number in range(RESTORE):
        second.observe(month(200 + number, spelt(number)))
    assert set(second.judge(tasks)) == {""}


def test_evidence_adds_up_over_restarts() -> None:
    records: dict[str, bytes] = {}
    names = []
    for number in range(WINDOW + 2):
        watch = going_on(records)
        names.append(watch.observe(month(number)))
        records |= kept(watch)
    assert names.count("trap:calendar") == 1
    assert names.index("trap:calendar") <= WINDOW


def test_nothing_is_kept_of_pages_that_are_not_suspicious_and_nothing_twice() -> None:
    watch = TrapWatch()
    watch.observe(visit("/page.html", "text"))
    assert kept(watch) == {}
    watch.observe(month(1))
    assert list(kept(watch)) == ["a.test"]
    assert kept(watch) == {}


def test_what_is_kept_of_a_host_is_bounded_and_begins_with_what_is_cut() -> None:
    watch = TrapWatch()
    for number in range(WINDOW + 2):
        watch.observe(month(number))
    for number in range(FAMILIES_OF_HOST):
        watch.observe(visit(f"/{spelt(number)}/2000/01.html", spelt(number) * 50))
    [(host, record)] = kept(watch).items()
    assert host == "a.test" and len(record) <= KEPT_BYTES
    assert len(watch) == FAMILIES_OF_HOST


def test_a_record_of_somebody_else_is_none() -> None:
    first = TrapWatch()
    first.observe(month(1))
    [record] = kept(first).values()
    for strange in (b"", b"\xc1", b"\x80", record[:-3], record.replace(b"/events", b"/x"), b"\x81\xa1/\xc4\x02xx"):
        watch = going_on({"a.test": strange})
        assert watch.judge(months(1, 3)) == ["", "", ""]
        assert watch.observe(month(2)) == ""


def test_hosts_that_left_the_memory_are_recalled() -> None:
    records: dict[str, bytes] = {}
    watch = going_on(records, hosts=2)
    for number in range(WINDOW + 2):
        watch.observe(month(number))
    records |= kept(watch)
    tasks = months(100, 20)
    for host in ("b.test", "c.test", "d.test"):
        watch.judge([Task(f"http://{host}/", host)])
    assert any(watch.judge(tasks))
