"""The door to trap detection: a provider that committer and frontier share, with its settings.

Place in the flow: a filter of tasks, and a watcher of the commit. :mod:`watch` decides.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated

from gossamer.engine.ends import Uses
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.contract import TaskGate
from gossamer.frontier.traps.contract import HostTemplate, Learnt
from gossamer.frontier.traps.memory import FOUND, WHAT
from gossamer.frontier.traps.watch import TrapWatch
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.task import Family, Task
from gossamer.values.visit import Visit

#: The rule that refuses tasks of a family which a person has confirmed to be a trap.
CONFIRMED = f"{FOUND}confirmed"


class TrapSheet(Sheet, frozen=True):
    """Settings of :class:`LearntTraps`."""

    cut: Annotated[bool, setting("Set the URLs of suspected traps aside; if off, only report and count them.")] = True
    confirmed: Annotated[
        tuple[str, ...],
        setting("Refuse the URLs of these families (OWNER SKIPPED PART); `gossamer traps DIR --confirm ID` sets this."),
    ] = ()
    released: Annotated[
        tuple[str, ...],
        setting("Never suspect these families (OWNER SKIPPED PART); `--release ID` sets this."),
    ] = ()
    families: Annotated[
        int,
        setting(
            "Watch at most this many parts of hosts; each takes 500 bytes.",
            unit="families",
            restart="it sizes the memory",
            ge=1,
        ),
    ] = 8_192
    hosts: Annotated[
        int,
        setting(
            "Remember at most this many hosts, with the facts that were learned about each.",
            unit="hosts",
            restart="it sizes the memory",
            ge=1,
        ),
    ] = 16_384


class LearntTraps(Provider[TrapSheet]):
    """Detects traps: parts of a host that grow although their pages say nothing new. Contracts: `Traps`, `Learner`."""

    ledger: Uses[Ledger]
    template: Uses[HostTemplate]
    keeps_state = True

    def __init__(self, sheet: TrapSheet | None = None) -> None:
        super().__init__(sheet)
        self._decisions = _decisions(self.sheet)
        self._has_confirmed = bool(self.sheet.confirmed)
        self.metrics.gauge("families", lambda: len(self.watch))

    @cached_property
    def watch(self) -> TrapWatch:
        """The watch over all hosts, made when it is first needed."""
        return TrapWatch(self.template, self.sheet.families, self.sheet.hosts)

    async def start(self) -> None:
        """Go on from what the ledger knows: hosts are recalled when they are touched."""
        is_known = self.ledger.counters().get(f"learnt:{WHAT}", 0) > 0
        self.watch.go_on(lambda hosts: self.ledger.learnt(hosts, WHAT), is_known=is_known)
        self.watch.decide(*self._decisions)

    def changed(self, before: TrapSheet) -> None:
        """Go by what a person has decided meanwhile."""
        self.watch.decide(*_decisions(self.sheet))
        self._has_confirmed = bool(self.sheet.confirmed)

    @property
    def confirmed(self) -> list[Family]:
        """Families that a person has confirmed to be traps."""
        return _decisions(self.sheet)[0]

    def learnt(self) -> Iterable[Learnt]:
        """The facts of hosts that have changed since the last call."""
        return self.watch.learnt()

    def observe(self, visit: Visit) -> str:
        """Learn from a visit; the trap that it uncovered, or an empty string."""
        name = self.watch.observe(visit)
        if name:
            self.metrics.count(f"found:{name}")
        return name

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """Refuse what a person has confirmed."""
        if not self._has_confirmed:
            return [""] * len(tasks)
        return [CONFIRMED if self.watch.decisions.is_trap(task) else "" for task in tasks]

    def place(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[Family | None]:
        """The family that each task is to be set aside under; None for what is crawled."""
        if not self.sheet.cut:
            return [None] * len(tasks)
        found = self.watch.place(tasks, is_new=gate == "schedule")
        for family in found:
            if family is not None:
                self.metrics.count(f"aside:{family.why}")
        return found

    def is_suspect(self, family: Family) -> bool:
        """Whether what is set aside of a family stays there."""
        return self.sheet.cut and self.watch.is_suspect(family)

    def is_confirmed(self, family: Family) -> bool:
        """Whether a person has said that it is a trap."""
        return self._has_confirmed and self.watch.decisions.of(family.owner, family.part) is True

    def returning(self) -> Sequence[Family]:
        """Families of which everything comes back."""
        return self.watch.returning()


def written(family: Family) -> str:
    """A family as a setting names it."""
    return f"{family.owner} {family.skipped} {family.part}"


def _decisions(sheet: TrapSheet) -> tuple[list[Family], list[Family]]:
    """The families that a person takes for traps, and those for none.

    Raises:
        SettingError: one of them has another form.
    """
    return [_read(text, "confirmed") for text in sheet.confirmed], [_read(text, "released") for text in sheet.released]


def _read(text: str, name: str) -> Family:
    owner, _, rest = text.partition(" ")
    skipped, space, part = rest.partition(" ")
    if not (owner and space and part and skipped.isdecimal() and len(skipped) < 3):
        raise SettingError(f"traps.{name}: {text!r} is not a family; `gossamer traps DIR` writes them")
    return Family(owner, part, CONFIRMED if name == "confirmed" else "", int(skipped))
