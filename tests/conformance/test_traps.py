"""Our trap detection and our watchers keep the promises of their contracts."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.contracts.watching import Learner
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.visit import Response, Visit, sha1_base32
from gossamer.services.aliases import HostAliases
from gossamer.services.traps.provider import LearntTraps, TrapSheet
from gossamer.stores.ledger.ledger import Ledger, LedgerSheet
from gossamer.testing.trapping import check_learner, check_traps, check_watcher, month


def test_learnt_traps() -> None:
    check_traps(LearntTraps)
    check_traps(lambda: LearntTraps(TrapSheet(families=4, hosts=4)))


def test_watchers() -> None:
    check_watcher(LearntTraps())
    check_watcher(HostAliases())


def twins() -> list[Visit]:
    """Pages of one machine under two names: the second is told from the documents that the ledger knows."""
    found = []
    for host in ("a.test", "www.a.test"):
        for number in range(6):
            body = f"This is page {number}. ".encode() * 60
            response = Response(
                Outcome.OK, 200, headers=(("content-type", "text/html"),), body=body, address="192.0.2.1"
            )
            original = "" if host == "a.test" else f"http://a.test/{number}"
            url = f"http://{host}/{number}"
            found.append(Visit(Task(url, host), response, digest=sha1_base32(body), duplicate_of=original))
    return found


@pytest.mark.parametrize(
    ("kind", "visits"), [(LearntTraps, [month(number) for number in range(30)]), (HostAliases, twins())]
)
def test_what_watchers_know_survives_the_process(
    tmp_path: Path, kind: Callable[[], Learner], visits: list[Visit]
) -> None:
    ledger = Ledger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    with ledger.group() as group:
        group.host(group.host_state("a.test").__class__("a.test", address="192.0.2.1"))

    def make() -> Learner:
        learner = kind()
        learner.ledger = ledger  # type: ignore[attr-defined]  # a role of the wiring
        asyncio.run(learner.start())  # type: ignore[attr-defined]  # a unit of the wiring
        return learner

    check_learner(make, ledger, visits)
    ledger.close()
