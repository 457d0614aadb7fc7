"""What becomes of the task at the head of a queue, decided over fakes; nothing that decides can write."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gossamer.frontier import dispatch
from gossamer.frontier.dispatch import DispatchBatch, DispatchStep, TaskDecision
from gossamer.frontier.host_turns import FrontierHost
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.testing.clock import FakeClock
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import Task

TASK = Task("http://a.test/x", "a.test", depth=2)


class ReadLedger:
    """A ledger that can be asked, and has no group to write with."""

    def __init__(self, limit: int | None, known: int | None) -> None:
        self.depths = SimpleNamespace(limit=limit)
        self.known = known

    def depth_of(self, identities: list[str]) -> list[int | None]:
        return [self.known for _ in identities]


def decide(
    task: Task = TASK,
    *,
    verdict: RobotsVerdict | None = None,
    closed: float = 0.0,
    suspect: bool = False,
    limit: int | None = None,
    known: int | None = None,
    port: str | None = "",
    absent: str = "",
    rule: str = "",
    ready: float = 0.0,
) -> TaskDecision:
    host = FrontierHost("a.test")
    host.absent = absent
    if port is not None:
        host.ports[80] = port
    frontier: Any = SimpleNamespace(
        clock=FakeClock(),
        ledger=ReadLedger(limit, known),
        gates={"fetch": [SimpleNamespace(judge_tasks=lambda gate, tasks: [rule] * len(tasks))]} if rule else {},
        robots=SimpleNamespace(
            judge=lambda task, now: verdict or RobotsVerdict(RobotsRuling.ALLOWED), state=lambda site: b"asked"
        ),
        traversal=SimpleNamespace(host_level=lambda task, level: level),
        politeness=SimpleNamespace(closed=lambda task, now: closed, pace=lambda host, delay: ready),
        lookups=SimpleNamespace(is_known=lambda host, task: port is not None),
        probes=SimpleNamespace(takes=lambda task: suspect),
    )
    return dispatch.decide(frontier, host, task, 0.0)


@pytest.mark.parametrize(
    ("given", "step"),
    [
        ({}, DispatchStep.GOES),
        ({"suspect": True}, DispatchStep.SET_ASIDE),
        ({"closed": 7.0}, DispatchStep.LATER),
        ({"limit": 1}, DispatchStep.TOO_DEEP),
        ({"limit": 1, "known": 1}, DispatchStep.GOES),
        ({"port": None}, DispatchStep.UNKNOWN),
        ({"port": "a private address"}, DispatchStep.REFUSED),
        ({"rule": "never: x"}, DispatchStep.REFUSED),
        ({"absent": "the name does not exist"}, DispatchStep.REFUSED),
        ({"verdict": RobotsVerdict(RobotsRuling.DENIED)}, DispatchStep.REFUSED),
        ({"verdict": RobotsVerdict(RobotsRuling.FETCH_FIRST, url="http://a.test/robots.txt")}, DispatchStep.WAITS),
        ({"verdict": RobotsVerdict(RobotsRuling.WAIT, until=9.0)}, DispatchStep.WAITS),
        ({"verdict": RobotsVerdict(RobotsRuling.ALLOWED, delay=5.0), "ready": 5.0}, DispatchStep.WAITS),
        ({"verdict": RobotsVerdict(RobotsRuling.ALLOWED, delay=5.0)}, DispatchStep.GOES),
    ],
)
def test_each_reason_to_hold_a_task_back_has_its_step(given: dict[str, Any], step: DispatchStep) -> None:
    assert decide(**given).step is step


def test_a_task_goes_out_at_the_shortest_depth_that_is_known() -> None:
    assert decide(limit=5, known=1).task.depth == 1
    assert decide(limit=5, known=4).task.depth == 2


def test_what_may_have_been_sent_is_not_sent_again() -> None:
    request = msgspec.structs.replace(requested(method="POST", body=b"a"), was_begun=True)
    task = msgspec.structs.replace(TASK, request=request)
    decided = decide(task)
    assert (decided.step, decided.outcome) == (DispatchStep.REFUSED, Outcome.INTERRUPTED)


class WrittenGroup:
    """Notes what is written, in order."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def __enter__(self) -> "WrittenGroup":
        self.told.append("group")
        return self

    def __exit__(self, *_: object) -> None:
        self.told.append("committed")

    def begun(self, task: Task) -> None:
        self.told.append("begun")

    def done(self, identity: str) -> bool:
        self.told.append("done")
        return True

    def later(self, task: Task, due: float, *, known: bool = False) -> None:
        self.told.append(f"later {due:g}" + (" again" if known else ""))

    def give_up(self, task: Task) -> bool:
        self.told.append("given up")
        return True

    def count(self, name: str, by: int) -> None:
        self.told.append(f"{name} {by}")


def test_what_was_decided_is_written_once_in_one_group() -> None:
    told: list[str] = []
    ledger: Any = SimpleNamespace(group=lambda: WrittenGroup(told), sync=lambda: told.append("synced"))
    batch = DispatchBatch()
    batch.write(ledger, 100.0)
    assert told == []
    batch.begun.append(TASK)
    batch.later.append((TASK, 7.0))
    batch.too_deep.append(TASK)
    batch.write(ledger, 100.0)
    batch.write(ledger, 100.0)
    assert told == ["group", "begun", "done", "later 107 again", "given up", "dropped:depth 1", "committed", "synced"]
