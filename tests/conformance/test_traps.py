"""Our trap detection and our watchers keep the promises of their contracts."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gossamer.frontier.traps.aliases import HostAliases
from gossamer.frontier.traps.contract import Learner, Learnt
from gossamer.frontier.traps.provider import LearntTraps, TrapSheet
from gossamer.frontier.traps.template import LearntTemplates
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.watching import check_learner, check_template, check_traps, check_watcher, month
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit, sha1_base32


def traps(sheet: TrapSheet | None = None) -> LearntTraps:
    """Trap detection of which nothing is kept."""
    made = LearntTraps(sheet)
    made.template = LearntTemplates()
    return made


def test_learnt_traps() -> None:
    check_traps(traps)
    check_traps(lambda: traps(TrapSheet(families=20, hosts=4)))


def test_learnt_templates() -> None:
    check_template(LearntTemplates)


def test_watchers() -> None:
    check_watcher(traps())
    check_watcher(LearntTemplates())
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


class TrapsAndTemplates:
    """What a crawl keeps of both together: without the templates, each start would find every page new."""

    ledger: RocksLedger

    async def start(self) -> None:
        self.templates, self.traps = LearntTemplates(), LearntTraps()
        self.templates.ledger = self.traps.ledger = self.ledger
        self.traps.template = self.templates
        await self.templates.start()
        await self.traps.start()

    def observe(self, visit: Visit) -> str:
        return self.traps.observe(visit)

    def learnt(self) -> Iterable[Learnt]:
        return [*self.traps.learnt(), *self.templates.learnt()]


@pytest.mark.parametrize(
    ("kind", "visits"), [(TrapsAndTemplates, [month(number) for number in range(60)]), (HostAliases, twins())]
)
def test_what_watchers_know_survives_the_process(
    tmp_path: Path, kind: Callable[[], Learner], visits: list[Visit]
) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
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
