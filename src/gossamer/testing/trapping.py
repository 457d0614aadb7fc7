"""Conformance suites for watchers and trap detection: run them over an implementation of your own."""

from collections.abc import Callable, Iterable, Sequence

from gossamer.contracts.ledger import Ledger
from gossamer.contracts.traps import Traps
from gossamer.contracts.watching import Learner, Learnt, Watcher
from gossamer.model.outcome import Outcome
from gossamer.model.task import ROBOTS, Task
from gossamer.model.visit import Response, Visit

#: Pages of a host after which a trap must be known (FAULTS 40).
KNOWN_AFTER = 50


def check_traps(make: Callable[[], Traps]) -> None:
    """Trap detection keeps its promises; `make` gives a fresh one each time."""
    _check_a_trap_is_cut(make())
    _check_news_return(make())
    _check_plain_sites_pass(make())


def check_watcher(watcher: Watcher) -> None:
    """A watcher keeps its promises."""
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
    """A watcher that remembers keeps its promises.

    Args:
        make: gives one that goes on from what `ledger` holds.
        ledger: empty.
        visits: something is found at several of them, some of it by the earlier ones.
    """
    told = [make().observe(one) for one in visits]
    assert not any(told), "it found in one visit what takes several: these visits prove nothing"
    alone = make()
    expected = [alone.observe(one) for one in visits]
    assert any(expected), "it found nothing: these visits prove nothing"
    found = []
    for one in visits:
        watcher = make()
        found.append(watcher.observe(one))
        _keep(watcher.learnt(), ledger)
        assert list(watcher.learnt()) == [], "what had not changed was given again"
    assert found == expected, "one that went on decided otherwise"
    kept = list(alone.learnt())
    with ledger.group() as group:
        for known in kept:
            group.learnt(known.host, known.what, b"\xc1 of another program")
    watcher = make()
    assert [watcher.observe(one) for one in visits] == expected, "what nobody can read was no reason to begin anew"


def _keep(learnt: Iterable[Learnt], ledger: Ledger) -> None:
    with ledger.group() as group:
        for one in learnt:
            assert len(one.data) <= KEPT_BYTES, f"{len(one.data)} bytes of one host"
            group.learnt(one.host, one.what, one.data)


def visit(url: str, text: str, *links: str, title: str = "A page") -> Visit:
    """A page of `http://a.test` as the committer sees it, with the URLs that are new by it."""
    response = Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=f"<p>{text}".encode())
    new = tuple(Task(f"http://a.test{link}", "a.test", 1, f"http://a.test{url}", "a href") for link in links)
    return Visit(Task(f"http://a.test{url}", "a.test"), response, title=title, new=new)


def month(number: int, text: str = "Events of the month") -> Visit:
    """A page of an endless calendar."""
    years, months = divmod(number, 12)
    later = divmod(number + 1, 12)
    return visit(
        f"/events/{2000 + years}/{months + 1:02}.html", text, f"/events/{2000 + later[0]}/{later[1] + 1:02}.html"
    )


def months(first: int, count: int) -> list[Task]:
    """Tasks of that calendar."""
    return [task for number in range(first - 1, first + count - 1) for task in month(number).new]


def _check_a_trap_is_cut(traps: Traps) -> None:
    names = [traps.observe(month(number)) for number in range(KNOWN_AFTER)]
    found = {name for name in names if name}
    assert len(found) == 1 and next(iter(found)).startswith("trap:"), f"a calendar without end was called {found}"
    tasks = months(100, 1000)
    verdicts = list(traps.judge_tasks("schedule", tasks))
    assert len(verdicts) == len(tasks), "one verdict for each task"
    assert set(verdicts) <= {"", *found}, "a verdict is the name of the trap, or empty"
    assert verdicts.count("") <= 120, f"{verdicts.count('')} of 1000 URLs of a trap pass, not a tenth"
    assert list(traps.judge_tasks("fetch", tasks)) == verdicts, "the two gates disagree"
    assert sum(traps.cuts().values()) >= 2 * (1000 - verdicts.count("")), "a cut was not counted"
    assert next(iter(found)) in traps.story(tasks[0].url), "the trap has no story"
    elsewhere = [
        Task("http://a.test/", "a.test"),
        Task("http://a.test/news/2000/01.html", "a.test"),
        *_on("b.test", tasks),
    ]
    assert not any(traps.judge_tasks("schedule", elsewhere)), "what is no part of the trap was cut"


def _check_news_return(traps: Traps) -> None:
    for number in range(KNOWN_AFTER):
        traps.observe(month(number))
    tasks = months(100, 1000)
    before = list(traps.judge_tasks("schedule", tasks)).count("")
    for number in range(100, 200):
        traps.observe(month(number, _words(number)))
    after = list(traps.judge_tasks("schedule", tasks)).count("")
    assert after > before, "news have returned, and the budget has not"


def _check_plain_sites_pass(traps: Traps) -> None:
    assert traps.story("http://a.test/") == "", "a story of what nobody has seen"
    for number in range(100):
        # Pages that are all alike, each linked to from the one before, and a list of equal leaves: dull, and not endless.
        assert traps.observe(visit(f"/pages/{number}.html", "A page", f"/pages/{number + 1}.html")) == ""
        assert traps.observe(visit(f"/leaves/2000/{number % 12 + 1:02}.html", "A leaf")) == ""
    assert not any(traps.judge_tasks("schedule", [Task("http://a.test/pages/7.html", "a.test")]))
    assert traps.cuts() == {}


def _words(number: int) -> str:
    """Words that no other number has."""
    letters = "".join("abcdefghij"[int(digit)] for digit in str(number))
    return " ".join(f"{letters}{end}" for end in ("alpha", "beta", "gamma", "delta", "omega"))


def _on(host: str, tasks: list[Task]) -> list[Task]:
    return [Task(task.url.replace("a.test", host), host) for task in tasks]
