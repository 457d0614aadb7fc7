"""Conformance suites for parts that learn from visits: relevance, watchers, templates, detection of traps."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from gossamer.expressions.contract import TaskGate
from gossamer.frontier.contract import LinkWords, PageWords, Relevance
from gossamer.frontier.traps.contract import Learner, Learnt, Traps, Watcher
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Task
from gossamer.values.visit import Response, Visit

#: Pages and links as the web has them, and as nobody should.
_TEXTS = (
    "",
    "a word",
    "word " * 9_000,
    "\x00\ufffd\u202e",
    "\U0001f600" * 50,
    "日本語の文章です。" * 100,
    "x" * 50_000,
)


def check_relevance(relevance: Relevance) -> None:
    """Check that a relevance keeps its promises."""
    for text in _TEXTS:
        page = PageWords("http://a.test/", text[:200], text)
        score = relevance.page(page)
        assert 0.0 <= score <= 1.0, f"a page's score is {score}"
        links = [LinkWords(f"http://a.test/{n}", text[: 7 * n], text[:200]) for n in range(12)]
        for source in (0.0, score, 1.0):
            scores = relevance.links(links, page, source)
            assert len(scores) == len(links), "one score for each link"
            assert all(0.0 <= one <= 1.0 for one in scores), "a link's score is a number from 0 to 1"
        assert len(relevance.links([], page, score)) == 0, "an empty call has an empty result"


#: Pages of a host after which a trap must be known (fault 40).
KNOWN_AFTER = 50


def check_traps(make: Callable[[], Traps]) -> None:
    """Check that trap detection keeps its promises; `make` returns a fresh one each time."""
    _check_a_trap_is_set_aside(make())
    _check_news_free_all(make())
    _check_plain_sites_pass(make())


def check_watcher(watcher: Watcher) -> None:
    """Check that a watcher keeps its promises."""
    refused = Visit(Task("http://a.test/refused", "a.test"), Response(Outcome.BLOCKED, error="a rule"))
    robots = Visit(
        Task("http://a.test/robots.txt", "a.test", relation=ROBOTS, source="http://a.test"), Response(Outcome.OK)
    )
    hostile = visit("/\x00" + "x" * 2000, "<" * 10_000 + "\x00\ud7ff" * 1000, title="404 " * 200)
    shapes = [refused, robots, hostile, month(1), visit("/?" + "a=1&" * 500, ""), visit("/" + "d/" * 900, "")]
    for one in (*shapes, *(visit(f"/page/{number}", "text " * number, f"/page/{number + 1}") for number in range(100))):
        before = repr(one)
        said = watcher.observe(one)
        assert isinstance(said, str), f"{said!r} is no name"
        assert repr(one) == before, "the visit was changed"


#: Bytes of one host in the ledger, at the most.
KEPT_BYTES = 16_384


def check_learner(make: Callable[[], Learner], ledger: Ledger, visits: Sequence[Visit]) -> None:
    """Check that a watcher that remembers keeps its promises.

    Args:
        make: returns a watcher that continues from the state in `ledger`.
        ledger: empty.
        visits: visits of which several, some of them early, give the watcher something to find.
    """
    told = [make().observe(one) for one in visits]
    assert not any(told), "one visit was enough to find a trap: these visits prove nothing"
    alone = make()
    expected = [alone.observe(one) for one in visits]
    assert any(expected), "it found nothing: these visits prove nothing"
    found = []
    for one in visits:
        watcher = make()
        found.append(watcher.observe(one))
        _keep(watcher.learnt(), ledger)
        assert list(watcher.learnt()) == [], "a state that had not changed was given again"
    assert found == expected, "a watch that went on from its state decided otherwise"
    kept = list(alone.learnt())
    with ledger.group() as group:
        for known in kept:
            group.learnt(known.host, known.what, b"\xc1 of another program")
    watcher = make()
    assert [watcher.observe(one) for one in visits] == expected, "an unreadable state was not a reason to begin anew"


def _keep(learnt: Iterable[Learnt], ledger: Ledger) -> None:
    with ledger.group() as group:
        for one in learnt:
            assert len(one.data) <= KEPT_BYTES, f"{len(one.data)} bytes of one host"
            group.learnt(one.host, one.what, one.data)


def visit(url: str, text: str, *links: str, title: str = "A page") -> Visit:
    """Return a page of `http://a.test` as the committer sees it, with its new URLs."""
    response = Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=f"<p>{text}".encode())
    new = tuple(Task(f"http://a.test{link}", "a.test", 1, f"http://a.test{url}", "a href") for link in links)
    return Visit(Task(f"http://a.test{url}", "a.test"), response, title=title, new=new)


def month(number: int, text: str = "Events of the month") -> Visit:
    """Return a page of an endless calendar."""
    years, months = divmod(number, 12)
    later = divmod(number + 1, 12)
    return visit(
        f"/events/{2000 + years}/{months + 1:02}.html", text, f"/events/{2000 + later[0]}/{later[1] + 1:02}.html"
    )


def months(first: int, count: int) -> list[Task]:
    """Return tasks of that calendar."""
    return [task for number in range(first - 1, first + count - 1) for task in month(number).new]


def _check_a_trap_is_set_aside(traps: Traps) -> None:
    names = [traps.observe(month(number)) for number in range(KNOWN_AFTER)]
    found = {name for name in names if name}
    assert len(found) == 1 and next(iter(found)).startswith("trap:"), f"a calendar without end was called {found}"
    tasks = months(100, 1000)
    families = list(traps.place("schedule", tasks))
    assert len(families) == len(tasks), "one family, or none, for each task"
    assert None not in families, "URLs of a trap are crawled"
    assert {family.why for family in families if family} == found, "a family has another name than what was uncovered"
    assert list(traps.place("fetch", tasks)) == families, "the two gates disagree"
    gates: tuple[TaskGate, ...] = ("schedule", "fetch")
    assert not any(any(traps.judge_tasks(gate, tasks)) for gate in gates), "a guess has refused something"
    [family] = set(filter(None, families))
    assert traps.is_suspect(family) and not traps.is_confirmed(family)
    assert list(traps.returning()) == [], "something was freed without news"
    elsewhere = [
        Task("http://a.test/", "a.test"),
        Task("http://a.test/news/2000/01.html", "a.test"),
        *_on("b.test", tasks),
    ]
    assert not any(traps.place("schedule", elsewhere)), "what is no part of the trap was set aside"


def _check_news_free_all(traps: Traps) -> None:
    for number in range(KNOWN_AFTER):
        traps.observe(month(number))
    tasks = months(100, 1000)
    families = set(filter(None, traps.place("schedule", tasks)))
    traps.observe(month(1_000, _words(1_000)))
    freed = list(traps.returning())
    assert families <= {msgspec.structs.replace(one, why=next(iter(families)).why) for one in freed}, (
        "news freed nothing"
    )
    assert not any(map(traps.is_suspect, families))
    assert not any(traps.place("schedule", tasks)), "news have returned, and URLs are set aside"
    assert list(traps.returning()) == [], "the same was freed twice"


def _check_plain_sites_pass(traps: Traps) -> None:
    for number in range(100):
        # Pages that are all alike, each linked to from the one before, and a list of equal leaves: dull, and not endless.
        assert traps.observe(visit(f"/pages/{number}.html", "A page", f"/pages/{number + 1}.html")) == ""
        assert traps.observe(visit(f"/leaves/2000/{number % 12 + 1:02}.html", "A leaf")) == ""
        assert (
            traps.observe(visit(f"/{'d/' * 15}{number}.html", _words(number), f"/{'d/' * 15}{number + 1}.html")) == ""
        )
        title = f"Room 404, item not found {number}"
        assert traps.observe(visit(f"/rooms/{number}.html", title, f"/rooms/{number + 1}.html", title=title)) == ""
    assert not any(traps.place("schedule", [Task("http://a.test/pages/7.html", "a.test")]))


def _words(number: int) -> str:
    letters = "".join("abcdefghij"[int(digit)] for digit in str(number))
    return " ".join(f"{letters}{end}" for end in ("alpha", "beta", "gamma", "delta", "omega"))


def _on(host: str, tasks: list[Task]) -> list[Task]:
    return [Task(task.url.replace("a.test", host), host) for task in tasks]
