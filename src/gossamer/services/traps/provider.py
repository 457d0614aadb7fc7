"""The door to trap detection: a provider that committer and frontier share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from gossamer.contracts.filtering import TaskGate
from gossamer.contracts.ledger import Ledger
from gossamer.contracts.watching import Learnt
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Visit
from gossamer.services.traps.memory import WHAT
from gossamer.services.traps.watch import FOUND, TrapWatch


class TrapSheet(Sheet, frozen=True):
    """Settings of :class:`LearntTraps`."""

    cut: Annotated[bool, setting("Refuse most URLs of a trap; otherwise traps are only named and counted.")] = True
    families: Annotated[
        int,
        setting("Parts of hosts that are watched, 2 kB each.", unit="families", restart="it sizes the memory", ge=1),
    ] = 8_192
    hosts: Annotated[
        int,
        setting(
            "Hosts of which it is remembered what is known of them, if only that nothing is.",
            unit="hosts",
            restart="it sizes the memory",
            ge=1,
        ),
    ] = 16_384


class LearntTraps(Provider[TrapSheet]):
    """Trap detection by what pages bring. Contracts: `traps.Traps`, `watching.Learner`."""

    ledger: Uses[Ledger]
    keeps_state = True

    def __init__(self, sheet: TrapSheet | None = None) -> None:
        super().__init__(sheet)
        self._watch = TrapWatch(self.sheet.families, self.sheet.hosts)
        self.metrics.gauge("families", lambda: len(self._watch))

    async def start(self) -> None:
        """Go on from what the ledger knows: hosts are recalled when they are touched."""
        counters = self.ledger.counters()
        self._watch.go_on(
            lambda hosts: self.ledger.learnt(hosts, WHAT),
            is_known=counters.get(f"learnt:{WHAT}", 0) > 0,
            has_found=any(name.startswith(f"found:{FOUND}") for name in counters),
        )

    def learnt(self) -> Iterable[Learnt]:
        """What has changed of hosts since this was last asked."""
        return self._watch.learnt()

    def observe(self, visit: Visit) -> str:
        """Learn from a visit; the trap that it uncovered, or an empty string."""
        name = self._watch.observe(visit)
        if name:
            self.metrics.count(f"found:{name}")
        return name

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """A verdict for each task."""
        if not self.sheet.cut:
            return [""] * len(tasks)
        verdicts = self._watch.judge(tasks)
        for verdict in verdicts:
            if verdict:
                self.metrics.count(f"cut:{verdict}")
        return verdicts

    def story(self, url: str) -> str:
        """What is known of the part of the host that a URL belongs to."""
        return self._watch.story(host_of(url), url)

    def cuts(self) -> Mapping[str, int]:
        """How many tasks each trap has cost, by its name."""
        return self._watch.by_name()
