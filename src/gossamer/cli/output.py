"""Where a command writes its answer, and what it says of tables that it could not read: for `query` and `report` alike."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gossamer.cli.telling import tell
from gossamer.model.errors import CrawlDirectoryError, UsageError

if TYPE_CHECKING:
    from gossamer.query.noted import Damage


@contextlib.contextmanager
def opened(output: str | None) -> Iterator[TextIO]:
    """The file, or standard output.

    Raises:
        UsageError: the file cannot be written.
    """
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        file = Path(output).open("w", encoding="utf-8", newline="")  # noqa: SIM115  # closed below
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    with file:
        yield file


def tell_damage(damaged: "Sequence[Damage]") -> int:
    """Say which files an answer is without; returns the exit status."""
    for damage in damaged:
        tell(f"{damage}: its rows are not in this answer; bring it back from a copy")
    return CrawlDirectoryError.exit_code if damaged else 0
