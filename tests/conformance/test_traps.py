"""Our trap detection and our watchers keep the promises of their contracts."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from xxhash import xxh32_intdigest

from gossamer.frontier.traps.contract import HostTemplate, Learner, Learnt
from gossamer.frontier.traps.likeness import HostAliases, LearntTemplates
from gossamer.frontier.traps.watch import LearntTraps, TrapSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.parsing import KEPT_BYTES, check_learner, check_traps, check_watcher, month
from gossamer.values.body import sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit


def _marks(name: str, count: int) -> set[int]:
    return {xxh32_intdigest(f"{name} {number}".encode()) for number in range(count)}


def check_template(make: Callable[[], HostTemplate]) -> None:
    """Check that a provider of templates keeps its promises; `make` returns a fresh one each time."""
    shared, other = _marks("shared", 500), _marks("other", 500)
    template = make()
    readings = []
    for number in range(80):
        own, section = _marks(f"own {number}", 20), _marks(f"section {number}", 20)
        readings.append(template.read("a.test", shared | own))
        assert own <= readings[-1].own, "text that no other page has is not called the page's own"
        reading = template.read("a.test", other | section)
        assert number < 3 or reading.own == section, "the template of another section is called the page's own"
    assert all(len(reading.own) == 20 for reading in readings[3:]), "a template is called a page's own"
    assert all(reading.likeness < 0.5 for reading in readings[3:]), "pages with nothing in common are called alike"
    assert template.read("a.test", set(shared), learn=False).own == set(), "a page has something of its own"
    again = template.read("a.test", shared | _marks("own 79", 20))
    assert again.likeness > 0.8, "a page that was read is not like itself"
    assert template.read("b.test", set(shared), learn=False).own == shared, "a host has the template of another"
    kept = list(template.learnt())
    assert kept and all(len(one.data) <= KEPT_BYTES for one in kept), "too much is kept of a host"
    template.read("a.test", set(shared), learn=False)
    assert list(template.learnt()) == [], "a state that had not changed was given again"
    for number in range(3_000):
        template.read(f"h{number}.test", _marks(f"host {number}", 300))
    assert template.read("a.test", set(shared), learn=False).share <= 1, "forgetting twice raised an error"


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
