"""A few lines that stay at the bottom of a terminal, and are drawn again in their place.

Place in the flow: :mod:`gossamer.cli.progress` draws; what is told meanwhile (:mod:`gossamer.cli.telling`) comes above. Most
terminals break the lines that stand there anew when they become narrower. So before each redraw the rows are counted that the
lines take at the present width: nothing is left behind after a resize.
"""

import os
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.cells import cell_len, chop_cells

#: Columns and rows where a terminal does not say how large it is.
USUAL = (80, 24)

#: A piece of a line: a text, or the same in several lengths, the longest first. An empty one is none.
Piece = str | Sequence[str]

#: Spaces between two pieces of a line.
GAP = "  "


def size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and rows of the terminal behind a stream."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return USUAL
    return size.columns or USUAL[0], size.lines or USUAL[1]


class Panel:
    """Lines at the bottom of a terminal."""

    def __init__(self, write: Callable[[str], object], size: Callable[[], tuple[int, int]]) -> None:
        """Nothing is drawn yet.

        Args:
            write: writes to the terminal, at once.
            size: gives the terminal's columns and rows as they are now.
        """
        self._write = write
        self._size = size
        self._lines: list[str] = []

    def __repr__(self) -> str:
        return f"<Panel of {len(self._lines)} lines>"

    @property
    def width(self) -> int:
        """Columns that a line may take: the last one stays free, since some terminals break a line that fills it."""
        return max(1, self._size()[0] - 1)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines in the place of those before."""
        self._write(self._instead("", lines))

    def clear(self) -> None:
        """Show nothing any more."""
        self._write(self._instead("", ()))

    def above(self, text: str) -> str:
        """What to write so that a text comes above the lines."""
        return self._instead(f"{text}\n", self._lines)

    def _instead(self, text: str, lines: Sequence[str]) -> str:
        erased = self._erased()
        width, rows = self.width, self._size()[1]
        # What has left the screen at its top cannot be drawn over.
        self._lines = [cut(line, width) for line in lines][: max(1, rows - 1)]
        return erased + text + "\n".join(self._lines)

    def _erased(self) -> str:
        if not self._lines:
            return ""
        columns = max(1, self._size()[0])
        rows = sum(max(1, -(-cell_len(line) // columns)) for line in self._lines)
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return f"\r{up}\x1b[J"


def cut(line: str, width: int) -> str:
    """A line that takes at most so many columns."""
    if cell_len(line) <= width:
        return line
    if width <= 3:
        return "." * width
    return chop_cells(line, width - 3)[0] + "..."


def fitted(pieces: Sequence[Piece], width: int) -> str:
    """As many of these pieces as one line has room for, in their order; the weightiest stands first, and is cut if it must be."""
    line = ""
    for piece in filter(None, pieces):
        lengths = [piece] if isinstance(piece, str) else piece
        longer = (f"{line}{GAP}{text}" if line else text for text in lengths if text)
        line = next((text for text in longer if cell_len(text) <= width), line or cut(lengths[-1], width))
    return line
