"""Answers of commands: the options that say in which form and where, and instants as people write them.

Place in the flow: `query`, `report`, `export`, `changes`, `sparql` and their like write through here.
"""

import contextlib
import datetime
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from gossamer.cli.helping import option
from gossamer.cli.saying import tell
from gossamer.engine import sheet
from gossamer.values.errors import CrawlDirectoryError, UsageError

if TYPE_CHECKING:
    from gossamer.storage.tables.manifest import Damage


def digits_of(option: str, text: str) -> str:
    """The digits by which a time names a version of a document, as `20260301` or `2026-03-01T12:00`, in UTC.
    Raises UsageError: it is no time."""
    digits = "".join(letter for letter in text if letter.isdigit())
    if not 4 <= len(digits) <= 14 or set(text) - set("0123456789-:/. TZ"):
        raise UsageError(f"{option} {text}: name a version by its time in UTC, as 20260301 or 2026-03-01T12:00")
    return digits


def instant(option: str, text: str | None) -> datetime.datetime | None:
    """What an option says.

    Args:
        option: its name, for the message.
        text: `2026-03-01`, `2026-03-01T12:00`, both in UTC unless they name a zone, or `7d` for seven days ago; None for none.

    Raises:
        UsageError: it is none of these.
    """
    if text is None:
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return _ago(option, text)
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


def _ago(option: str, text: str) -> datetime.datetime:
    try:
        if text[-1:].isdigit():
            raise ValueError
        return datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=sheet.parse(text, "s"))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} {text}: write a time, as 2026-03-01, 2026-03-01T12:00, or 7d for a week ago"
        ) from None


F = TypeVar("F", bound=Callable[..., Any])

to_file = option("-o --output FILE", "Write to a file instead of standard output.")

raw_cells = option("--raw", "Write CSV without an apostrophe before cells that a spreadsheet would run as a formula.")


def in_form(forms: Sequence[str], text: str) -> Callable[[F], F]:
    """The option for the form of an answer; a table unless told."""
    choice = click.Choice(forms)
    return click.option("-f", "--format", "form", type=choice, default="table", show_default=True, help=text)


@contextlib.contextmanager
def opened(output: str | None) -> Iterator[TextIO]:
    """The file, or standard output. Raises UsageError: the file cannot be written."""
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
