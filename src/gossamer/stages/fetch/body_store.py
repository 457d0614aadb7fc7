"""A body that is not simply collected in memory.

Place in the flow: a transfer (:mod:`~gossamer.stages.fetch.transfer`) writes large and coded bodies here.
"""

from gossamer.model.body import Body, BodyWriter
from gossamer.reading.coding import Decoded, Undoing, codings, refusal
from gossamer.reading.keeping import Keeping


class BodyStore:
    """A body beyond what is simply collected: as it came and without its content coding, each on disk if it is large."""

    __slots__ = ("_raw", "_undoing")

    def __init__(self, keeping: Keeping, content_coding: str) -> None:
        self._raw = BodyWriter(keeping.memory, keeping.directory, digest=True)
        applied = codings(content_coding)
        self._undoing: Undoing | None = None
        if applied and not refusal(applied):
            self._undoing = Undoing(applied, keeping)

    def write(self, piece: bytes) -> None:
        """Take a piece as it came (OSError where the disk is full)."""
        self._raw.write(piece)
        if self._undoing is not None:
            self._undoing.feed(piece)

    @property
    def cut(self) -> str:
        """The stop that the decoded body has run into, if it has: nothing more need come."""
        return self._undoing.cut if self._undoing is not None else ""

    def take(self, *, whole: bool) -> tuple[Body, Decoded | None]:
        """The body as it came, and what its content coding came to where that could be undone."""
        return self._raw.take(), self._undoing.end(whole=whole) if self._undoing is not None else None
