"""Conformance suite for lenders: a URL of a lent host is in one place, wherever a group fails and whenever the process dies."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from gossamer.contracts.ledger import Ledger
from gossamer.contracts.lending import Lender, LentHosts
from gossamer.model.brought import Brought
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.visit import Response, Visit


class TestedLender(Lender, LentHosts, Protocol):
    """Both sides of a lender: for the ledger in front, and for the frontier."""


#: Closes what is open as a kill would, opens ledger and lender again, and starts the lender; at first both are empty. `a.test` has
#: a runtime and `b.test` has none; the ledger is the one that lends (`lending-ledger`).
ReopenLent = Callable[[], Awaitable[tuple[Ledger, TestedLender]]]


class _NotKept(Exception):
    """Makes a group fail."""


async def check_lending(reopen: ReopenLent) -> None:
    """Check that a lender, behind the ledger that lends, keeps its promises."""
    ledger, lender = await reopen()
    assert [lender.lends(f"{letter}.test") for letter in "ab"] == [True, False]
    assert not lender.is_out and lender.pages == 0
    tasks = [Task(f"http://{letter}.test/{number}", f"{letter}.test", 1) for letter in "ab" for number in range(3)]
    try:
        with ledger.group() as group:
            group.push(tasks)
            raise _NotKept
    except _NotKept:
        pass
    assert not lender.is_out, "a group that failed lent something"
    with ledger.group() as group:
        group.push(tasks)
    assert ledger.counters()["lent"] == 3 and ledger.counters()["discovered"] == 6
    ledger, lender = await reopen()
    assert lender.is_out and ledger.counters()["lent"] == 3, "a kill lost a lent task"
    with ledger.group() as group:
        group.push(tasks[:1])
    assert ledger.counters()["lent"] == 3, "a task that was lent twice counts twice"
    came = [Visit(task, _brought("whole")) for task in tasks[:2]] + [Visit(tasks[2], _brought("text"))]
    with ledger.group() as group:
        for visit in came[:2]:
            assert group.visited(visit, None)
    assert ledger.counters()["lent"] == 1 and ledger.document(tasks[0].url) is not None
    with ledger.group() as group:
        group.visited(came[2], None)
    assert lender.is_out, "a part without links is kept until its crawler has ended"
    told: list[str] = []
    lender.watch(lambda: told.append("news"), lambda: None)
    lender.end()
    ledger, lender = await reopen()
    assert lender.is_out, "the end of a run ended a lease that is out"


def _brought(form: str) -> Response:
    brought = Brought("c1", "https://runtime.test", "", 0, "whole" if form == "whole" else "text")
    return Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=b"<p>x", brought=brought)
