"""`gossamer changes` and `gossamer diff`: what visits of known pages found changed, and how the text of a page differs
between two of its stored versions.
"""

import datetime
import difflib
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.helping import crawl_to_read, digits_of, in_form, instant, opened, option, tell_damage, to_file
from gossamer.cli.saying import shown, tell
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.query.archive import ArchivedView

#: Changes that a terminal shows where `--limit` does not say.
SHOWN = 200

#: Changes that are listed: those of :class:`gossamer.values.outcome.PageChange` by which a page is another one, or elsewhere.
_KINDS = ("changed", "redirected", "gone", "back")

#: The columns that a person wants to read; the table `changes` (:data:`gossamer.query.engine.DERIVED`) has more.
_COLUMNS = ("fetched_at", "change", "similarity", "bytes_before", "bytes", "status", "url", "title")

#: How a terminal shows lines that went, and lines that came.
_COLOURS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}
_PLAIN = "\x1b[0m"


@click.command()
@crawl_to_read
@option("--since T", "Show only changes found at this time or later, as 2026-03-01, or 1d for a day ago.")
@option("--host hosts HOST...", "Show only changes on this host or below it (repeatable).")
@option("--kind kinds", "Show only changes of this kind (repeatable).", multiple=True, type=click.Choice(_KINDS))
@in_form(("table", "csv", "jsonl"), "Write the list in this format; CSV and JSON lines hold all of it.")
@to_file
@option(
    "--limit", f"Show at most this many of the newest changes [default: {SHOWN}; 0 for all].", type=click.IntRange(0)
)
def changes(
    directory: str,
    since: str | None,
    hosts: tuple[str, ...],
    kinds: tuple[str, ...],
    form: str,
    output: str | None,
    limit: int | None,
) -> int:
    """List what changed between visits in the crawl in DIR, the newest last, also while it runs.

    A crawl with --recrawl visits pages again and keeps the findings of each visit. `gossamer diff` shows how a page
    differs, and the table `changes` holds the same list for `gossamer query`.

    \b
    gossamer changes mycrawl --since 1d
    gossamer changes mycrawl --host example.org --kind gone --kind back -f csv -o changes.csv
    """
    from gossamer.query.convert import convert
    from gossamer.query.database import Database
    from gossamer.query.printing import write_rows
    from gossamer.storage.tables.places import crawl_directory

    place = crawl_directory(directory)
    newest = (limit or None) if limit is not None else SHOWN if form == "table" else None
    # Changes of these kinds since then, on these hosts or below them, the newest ones of them, in the order of time.
    conditions: list[str] = ["true"]
    values: list[object] = []
    if (at := instant("--since", since)) is not None:
        conditions.append("fetched_at >= ?")
        values.append(at.astimezone(datetime.UTC).replace(tzinfo=None))
    if names := [host.strip(".").lower() for host in hosts]:
        conditions.append(f"({' OR '.join(['host = ? OR ends_with(host, ?)'] * len(names))})")
        values += [value for name in names for value in (name, f".{name}")]
    if kinds:
        conditions.append(f"change IN ({', '.join('?' * len(kinds))})")
        values += kinds
    limited = "" if newest is None else f" ORDER BY fetched_at DESC, url LIMIT {newest:d}"
    chosen = f"SELECT {', '.join(_COLUMNS)} FROM changes WHERE {' AND '.join(conditions)}{limited}"
    question = f"SELECT * FROM ({chosen}) ORDER BY fetched_at, url"
    convert(place)
    with Database(place) as database, opened(output) as out:
        rows = database.ask(question, values)
        count = write_rows(form, rows.columns, rows, out, types=rows.types)
        if form == "table" and not count:
            tell(f"no changes; `gossamer resume {directory} --recrawl adaptive` visits known pages again")
        elif form == "table" and count == newest:
            tell(f"these are the newest {count:,}; --limit 0 shows all")
        return tell_damage(database.damage_to(question))


@click.command()
@crawl_to_read
@click.argument("url", metavar="URL")
@option(
    "--at",
    "Compare the versions that were current at these times, as 20260301 20260308 (UTC).",
    nargs=2,
    metavar="T1 T2",
)
@option("--source of_source", "Compare the documents as they came, not their texts.")
@option(
    "-U --unified context",
    "Show this many lines around each difference.",
    type=click.IntRange(0, 1_000),
    default=3,
    show_default=True,
)
def diff(directory: str, url: str, at: tuple[str, str] | None, of_source: bool, context: int) -> None:
    """Show how the text of URL differs between two stored versions, in the crawl in DIR.

    Without --at, it compares the last version with the newest earlier one that has another text.

    \b
    gossamer diff mycrawl https://example.org/prices
    gossamer diff mycrawl https://example.org/prices --at 20260301 20260308
    """
    from gossamer.storage.tables.places import crawl_directory

    times = () if at is None else [digits_of("--at", time) for time in at]
    before, after = _versions(crawl_directory(directory), url, times, of_source=of_source)
    lines = differing(_lines(before, of_source), _lines(after, of_source), context)
    is_coloured = sys.stdout.isatty()
    print(f"--- {shown(after.url)}\t{before.at}")
    print(f"+++ {shown(after.url)}\t{after.at}")
    for line in lines:
        colour = _COLOURS.get(line[:1], "") if is_coloured else ""
        print(f"{colour}{shown(line)}{_PLAIN if colour else ''}")
    if not lines:
        tell("both versions say the same; --source compares them as they came")
    if before.is_cut or after.is_cut:
        tell("a version is very large; only its beginning was compared")


# How two stored versions of a document differ: in its text, or as it came. A page is text of strangers, so that the work is
# bounded: lines that are compared, and versions that are looked at.

#: Lines of both versions together that are compared line by line, between the lines at which they begin and end alike. The time
#: that this takes can grow with the square of their number, and a page can be made for that.
COMPARED_LINES = 4_000

#: Versions that are looked at for one whose text differs from that of the last.
LOOKED_AT = 50


def _versions(directory: Path, text: str, at: Sequence[str], *, of_source: bool) -> "tuple[ArchivedView, ArchivedView]":
    """Two versions of a document, out of the archive as `gossamer cat` finds them: those at the digits of two times, the earlier
    one first, or the last one and the newest one before whose text is another. Raises UsageError: it is no URL, or the archive does
    not have two versions; CrawlDirectoryError: the archive or its index is damaged."""
    from gossamer.query.archive import ArchiveReader, view_archived

    if at:
        before, after = (view_archived(directory, text, time) for time in at)
        if before.at == after.at:
            raise UsageError(
                f"{before.url}: both times name the version of {before.at}; `gossamer changes` lists times"
            )
        return before, after
    # The last version, and the newest one before it that says something else, or else the one before it.
    after = view_archived(directory, text)
    last = "".join(letter for letter in after.at[:19] if letter.isdigit())
    captures = ArchiveReader(directory).captures(after.url)
    times = [time for time in dict.fromkeys(one.timestamp for one in reversed(captures)) if time < last]
    if not times:
        raise UsageError(f"the archive has only one version of {after.url}, that of {after.at}")
    views = (view_archived(directory, after.url, time) for time in times[:LOOKED_AT])
    first, present = next(views), _lines(after, of_source)
    return next((view for view in chain([first], views) if _lines(view, of_source) != present), first), after


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
