"""How two stored versions of a document differ: in its text, or as it came.

Place in the flow: `gossamer diff` asks here; versions come out of the archive (:mod:`gossamer.query.archive`). A page is text of
strangers, so that the work is bounded: lines that are compared, and versions that are looked at.
"""

import difflib
from itertools import chain
from pathlib import Path

import msgspec

from gossamer.query.archive import ArchivedView, ArchiveReader, view_archived
from gossamer.storage.tables.places import crawl_directory
from gossamer.values.errors import UsageError

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
    """How two versions of a document differ, out of the archive as `gossamer cat` finds them.

    Args:
        at: digits of two times, the earlier one first; None for the last version and the newest one before whose text is
            another.
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
        # The last version, and the newest one before it that says something else, or else the one before it.
        after = view_archived(directory, text)
        last = "".join(letter for letter in after.at[:19] if letter.isdigit())
        captures = ArchiveReader(crawl_directory(str(directory))).captures(after.url)
        times = [time for time in dict.fromkeys(one.timestamp for one in reversed(captures)) if time < last]
        if not times:
            raise UsageError(f"the archive has only one version of {after.url}, that of {after.at}")
        views = (view_archived(directory, after.url, time) for time in times[:LOOKED_AT])
        first, present = next(views), _lines(after, of_source)
        before = next((view for view in chain([first], views) if _lines(view, of_source) != present), first)
    lines = differing(_lines(before, of_source), _lines(after, of_source), context)
    return VersionDifference(after.url, before.at, after.at, lines, before.is_cut or after.is_cut)


def _lines(view: "ArchivedView", of_source: bool) -> list[str]:
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
