"""What a person has decided of suspected parts: these are traps, those are none. It wins over what is guessed.

Place in the flow: `watch` asks here before it sets anything aside; the decisions come from the settings of the provider.
"""

from collections.abc import Iterator, Sequence

from gossamer.model.aside import Family
from gossamer.model.task import Task
from gossamer.services.traps.membership import belongs, wild_owner
from gossamer.services.traps.memory import Memory


class Decisions:
    """A person's word, by owner and part."""

    def __init__(self, memory: Memory) -> None:
        """`memory` says what else is known of the hosts."""
        self._memory = memory
        self._decided: dict[tuple[str, str], tuple[Family, bool]] = {}
        """By owner and part: the family, and whether it is a trap."""

    def __repr__(self) -> str:
        return f"<Decisions of {len(self._decided)} families>"

    def decide(self, traps: Sequence[Family], trusted: Sequence[Family]) -> Iterator[Family]:
        """Take these decisions in place of all earlier ones; yields the families that are trusted and were not."""
        before = self._decided
        self._decided = {(one.owner, one.part): (one, True) for one in traps}
        self._decided |= {(one.owner, one.part): (one, False) for one in trusted}
        for key, (family, is_trap) in self._decided.items():
            if not is_trap and before.get(key) != (family, False):
                yield family

    def of(self, owner: str, part: str) -> bool | None:
        """Whether a part is a trap; None where nobody has said so or otherwise."""
        decided = self._decided.get((owner, part))
        return None if decided is None else decided[1]

    def is_trap(self, task: Task) -> bool:
        """Whether a person has confirmed that a task is part of a trap."""
        return any(is_trap for is_trap in self._said(task))

    def has(self, task: Task) -> bool:
        """Whether a person has decided on a family of a task: what else is suspected of it does not count."""
        return any(True for _ in self._said(task))

    def _said(self, task: Task) -> Iterator[bool]:
        for family, is_trap in self._decided.values():
            if family.owner in (task.host, wild_owner(task.host)) and belongs(
                task, family.part, family.skipped, self._memory.host(family.owner)
            ):
                yield is_trap
