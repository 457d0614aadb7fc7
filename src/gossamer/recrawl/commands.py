"""`gossamer changes` and `gossamer diff`: what visits of known pages found changed."""

import datetime
import sys
from typing import TYPE_CHECKING

import click

from gossamer.cli.output import digits_of, instant, opened, tell_damage
from gossamer.cli.telling import tell
from gossamer.values.visit import PageChange

if TYPE_CHECKING:
    from gossamer.recrawl.compare import VersionDifference

#: Changes that a terminal shows where `--limit` does not say.
SHOWN = 200

_KINDS = tuple(one.value for one in PageChange if one not in (PageChange.UNCHANGED, PageChange.MISSING))

#: How a terminal shows lines that went, and lines that came.
_COLOURS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}
_PLAIN = "\x1b[0m"


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--since", metavar="T", help="Show only changes found at this time or later, as 2026-03-01, or 1d for a day ago."
)
@click.option(
    "--host", "hosts", multiple=True, metavar="HOST", help="Show only changes on this host or below it (repeatable)."
)
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(_KINDS), help="Show only changes of this kind (repeatable)."
)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "csv", "jsonl"]),
    default="table",
    show_default=True,
    help="Write the list in this format; CSV and JSON lines hold all of it.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    help=f"Show at most this many of the newest changes [default: {SHOWN}; 0 for all].",
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
    from gossamer.query import printing
    from gossamer.recrawl.compare import ChangeChoice, changes_of
    from gossamer.storage.tables.places import crawl_directory

    place = crawl_directory(directory)
    asked = instant("--since", since)
    newest = (limit or None) if limit is not None else SHOWN if form == "table" else None
    choice = ChangeChoice(
        since=asked and asked.astimezone(datetime.UTC).replace(tzinfo=None),
        hosts=tuple(host.strip(".").lower() for host in hosts),
        kinds=kinds,
        newest=newest,
    )
    with changes_of(place, choice) as found, opened(output) as out:
        if form == "csv":
            printing.write_csv(found.rows.columns, found.rows, out, types=found.rows.types)
        elif form == "jsonl":
            printing.write_jsonl(found.rows.columns, found.rows, out)
        else:
            count = printing.write_table(found.rows.columns, found.rows, out)
            _tell(directory, count, newest)
        return tell_damage(found.damaged)


def _tell(directory: str, count: int, newest: int | None) -> None:
    if not count:
        tell(f"no changes; `gossamer resume {directory} --recrawl adaptive` visits known pages again")
    elif count == newest:
        tell(f"these are the newest {count:,}; --limit 0 shows all")


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("url", metavar="URL")
@click.option(
    "--at",
    nargs=2,
    metavar="T1 T2",
    help="Compare the versions that were current at these times, as 20260301 20260308 (UTC).",
)
@click.option("--source", "of_source", is_flag=True, help="Compare the documents as they came, not their texts.")
@click.option(
    "-U",
    "--unified",
    "context",
    type=click.IntRange(0, 1_000),
    default=3,
    show_default=True,
    help="Show this many lines around each difference.",
)
def diff(directory: str, url: str, at: tuple[str, str] | None, of_source: bool, context: int) -> None:
    """Show how the text of URL differs between two stored versions, in the crawl in DIR.

    Without --at, it compares the last version with the newest earlier one that has another text.

    \b
    gossamer diff mycrawl https://example.org/prices
    gossamer diff mycrawl https://example.org/prices --at 20260301 20260308
    """
    from gossamer.recrawl.compare import difference
    from gossamer.storage.tables.places import crawl_directory

    times = None if at is None else (digits_of("--at", at[0]), digits_of("--at", at[1]))
    _print(difference(crawl_directory(directory), url, times, of_source=of_source, context=context))


def _print(found: "VersionDifference") -> None:
    from gossamer.query.printing import shown

    is_coloured = sys.stdout.isatty()
    print(f"--- {shown(found.url)}\t{found.before}")
    print(f"+++ {shown(found.url)}\t{found.after}")
    for line in found.lines:
        colour = _COLOURS.get(line[:1], "") if is_coloured else ""
        print(f"{colour}{shown(line)}{_PLAIN if colour else ''}")
    if not found.lines:
        tell("both versions say the same; --source compares them as they came")
    if found.is_cut:
        tell("a version is very large; only its beginning was compared")
