"""Agents as values: which there are, how much each can carry, and where each one stands."""

import re
from collections.abc import Iterable

import msgspec

from gossamer.model.errors import UsageError
from gossamer.model.task import Task

#: What an agent may be called: its name stands in the names of folders and files.
AGENT_NAME = r"[a-z0-9-]{1,32}"

#: `agent-03`, `agent-03=2.5`, `agent-03=2.5@budapest` or `agent-03@budapest`.
_MEMBER = re.compile(rf"(?P<agent>{AGENT_NAME})(=(?P<capacity>\d{{1,2}}(\.\d{{1,3}})?))?(@(?P<place>\S{{1,64}}))?")


class Member(msgspec.Struct, frozen=True):
    """One agent, as designation sees it."""

    agent: str
    capacity: float = 1.0
    """How much of the web it gets, compared with the others; 0 of one that has left, whose files are still there."""
    place: str = ""
    """Where it stands; empty where nobody said."""

    def __str__(self) -> str:
        capacity = "" if self.capacity == 1.0 else f"={self.capacity:g}"
        return f"{self.agent}{capacity}{self.place and '@'}{self.place}"


class Designated(msgspec.Struct, frozen=True, gc=False):
    """A task and the agent that it goes to."""

    agent: str
    task: Task


def at_work(members: Iterable[str]) -> tuple[str, ...]:
    """The names of those members that have not left, in order. Raises as :func:`member`."""
    return tuple(one.agent for one in map(member, members) if one.capacity)


def agent_name(number: int) -> str:
    """The name of the agent with this number, counted from 0."""
    return f"agent-{number:02d}"


def member(text: str) -> Member:
    """The member that a setting names: `AGENT`, `AGENT=CAPACITY`, `AGENT@PLACE` or `AGENT=CAPACITY@PLACE`.

    Raises:
        UsageError: it is none of these, or the capacity is above 99.999.
    """
    match = _MEMBER.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} names no agent; write AGENT, AGENT=CAPACITY or AGENT=CAPACITY@PLACE")
    return Member(match["agent"], float(match["capacity"] or 1.0), match["place"] or "")
