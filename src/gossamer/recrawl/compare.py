"""What visits of known pages found changed, and how the text of a page differs between two of its stored versions."""

import datetime
import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gossamer.query.archive import ArchiveReader
from gossamer.query.archived import ArchivedView, view_archived
from gossamer.query.convert import convert
from gossamer.query.database import Database, Rows
from gossamer.storage.tables.manifest import Damage
from gossamer.storage.tables.places import crawl_directory
from gossamer.values.errors import UsageError

# What visits of known pages found changed, in the order in which it was found.
#
# Place in the flow: `gossamer changes` asks here; the table `changes` (:data:`gossamer.query.views.DERIVED`) says what a
# change is.

#: The columns that a person wants to read; the table has more.
_COLUMNS = ("fetched_at", "change", "similarity", "bytes_before", "bytes", "status", "url", "title")


class ChangeChoice(msgspec.Struct, frozen=True):
    """Which changes are meant."""

    since: datetime.datetime | None = None
    """UTC, without a zone: changes that were found at this instant or later."""
    hosts: tuple[str, ...] = ()
    """On these hosts or below them."""
    kinds: tuple[str, ...] = ()
    """Of these kinds."""
    newest: int | None = None
    """So many of the newest ones."""


class FoundChanges(msgspec.Struct, frozen=True):
    """An answer."""

    rows: Rows
    damaged: Sequence[Damage]
    """Files whose rows are in no answer."""


@contextmanager
def changes_of(directory: Path, choice: ChangeChoice) -> Iterator[FoundChanges]:
    """The changes of a crawl, which may be at work, the oldest first.

    Args:
        directory: the crawl's.
        choice: which ones.

    Raises:
        CrawlDirectoryError: the tables are damaged.
        OSError: there is no room to look at them.
    """
    convert(directory)
    conditions: list[str] = ["true"]
    values: list[object] = []
    if choice.since is not None:
        conditions.append("fetched_at >= ?")
        values.append(choice.since)
    if choice.hosts:
        conditions.append(f"({' OR '.join(['host = ? OR ends_with(host, ?)'] * len(choice.hosts))})")
        values += [value for host in choice.hosts for value in (host, f".{host}")]
    if choice.kinds:
        conditions.append(f"change IN ({', '.join('?' * len(choice.kinds))})")
        values += choice.kinds
    newest = "" if choice.newest is None else f" ORDER BY fetched_at DESC, url LIMIT {choice.newest:d}"
    chosen = f"SELECT {', '.join(_COLUMNS)} FROM changes WHERE {' AND '.join(conditions)}{newest}"
    question = f"SELECT * FROM ({chosen}) ORDER BY fetched_at, url"
    with Database(directory) as database:
        yield FoundChanges(database.ask(question, values), database.damage_to(question))


# How the text of a page differs between two of its stored versions, as people read differences.
#
# Place in the flow: `gossamer diff` asks here. Documents come out of the archive as `gossamer cat` finds them.


#: Lines of both versions together that are compared line by line, between the lines at which they begin and end alike. The time
#: that this takes can grow with the square of their number, and a page can be made for that.
COMPARED_LINES = 4_000

#: Versions that are looked at for one whose text differs from that of the last.
LOOKED_AT = 50


class VersionDifference(msgspec.Struct, frozen=True):
    """Two versions of a document."""

    url: str
    """Canonical."""
    before: str
    """When the earlier one was fetched, as its record has it."""
    after: str
    lines: list[str]
    """A unified difference without its heads, each line with its sign; empty where the texts are the same."""
    is_cut: bool
    """Only the beginning of a version was compared."""


def difference(
    directory: Path, text: str, at: tuple[str, str] | None = None, *, of_source: bool = False, context: int = 3
) -> VersionDifference:
    """How two versions of a document differ.

    Args:
        directory: the crawl's.
        text: the URL.
        at: digits of two times, the earlier one first; None for the last version and the newest one before whose text is another.
        of_source: compare the documents as they are in place of what they say to readers.
        context: lines that are shown around each difference.

    Raises:
        UsageError: it is no URL, or the archive does not have two versions.
        CrawlDirectoryError: the archive or its index is damaged.
    """
    if at is not None:
        before, after = (view_archived(directory, text, time) for time in at)
        if before.at == after.at:
            raise UsageError(
                f"{before.url}: both times name the version of {before.at}; `gossamer changes` lists times"
            )
    else:
        before, after = _last_two(directory, text, of_source)
    lines = differing(_lines(before, of_source), _lines(after, of_source), context)
    return VersionDifference(after.url, before.at, after.at, lines, before.is_cut or after.is_cut)


def _last_two(directory: Path, text: str, of_source: bool) -> tuple[ArchivedView, ArchivedView]:
    """The last version, and the newest one before it that says something else, or else the one before it."""
    after = view_archived(directory, text)
    times = _times(directory, after.url, after.at)
    if not times:
        raise UsageError(f"the archive has only one version of {after.url}, that of {after.at}")
    views = (view_archived(directory, after.url, time) for time in times[:LOOKED_AT])
    first: ArchivedView | None = None
    for view in views:
        first = first or view
        if _lines(view, of_source) != _lines(after, of_source):
            return view, after
    assert first is not None
    return first, after


def _times(directory: Path, url: str, last: str) -> list[str]:
    """The times of all versions before one, the newest first."""
    digits = "".join(letter for letter in last[:19] if letter.isdigit())
    captures = ArchiveReader(crawl_directory(str(directory))).captures(url)
    found = dict.fromkeys(one.timestamp for one in reversed(captures))
    return [time for time in found if time < digits]


def _lines(view: ArchivedView, of_source: bool) -> list[str]:
    return (view.source if of_source or not view.text else view.text).splitlines()


def differing(before: list[str], after: list[str], context: int) -> list[str]:
    """A unified difference of two texts without its heads; empty where they are the same."""
    start = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        start += 1
    alike = 0
    for one, other in zip(reversed(before[start:]), reversed(after[start:]), strict=False):
        if one != other:
            break
        alike += 1
    old, new = before[start : len(before) - alike], after[start : len(after) - alike]
    if len(old) + len(new) > COMPARED_LINES:
        behind = before[len(before) - alike :][:context]
        around = [f" {line}" for line in before[max(0, start - context) : start]]
        first, more = start + 1 - len(around), len(around) + len(behind)
        head = f"@@ -{first},{len(old) + more} +{first},{len(new) + more} @@"
        gone, come = [f"-{line}" for line in old], [f"+{line}" for line in new]
        return [head, *around, *gone, *come, *(f" {line}" for line in behind)]
    return list(difflib.unified_diff(before, after, n=context, lineterm=""))[2:]
