"""What other installed packages offer, by entry point group.

The one place that asks for it: looking through installed packages takes tens of milliseconds, so it happens only when a
wiring names something that does not ship, or when a message lists what is known.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def offered(group: str, name: str | None = None) -> "list[EntryPoint]":
    """Entry points of a group, or those of one name in it."""
    from importlib.metadata import entry_points

    return list(entry_points(group=group) if name is None else entry_points(group=group, name=name))
