"""`gossamer report`: ready-made questions to a crawl, for the terminal, a spreadsheet, a browser or a build."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from gossamer.cli.output import opened, tell_damage
from gossamer.cli.telling import tell
from gossamer.model.errors import UsageError

if TYPE_CHECKING:
    from gossamer.query.reports.values import MadeReport

#: The exit status of a report that found what `--fail-on` names: link checkers end with it, and no other command of ours.
FOUND = 1

#: Rows of a table that a terminal or a page shows where `--limit` does not say.
SHOWN = 20
IN_A_PAGE = 200


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "csv", "jsonl", "html"]),
    default="table",
    show_default=True,
    help="Write the report in this format; CSV and JSON lines hold the whole of its first table.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    help="Show at most this many rows of each table [default: 20, in HTML 200; 0 for all].",
)
@click.option(
    "--fail-on",
    "fail_on",
    multiple=True,
    metavar="NAME",
    help="Exit with 1 if this report has rows: broken, errors, duplicates, redirects or traps (repeatable).",
)
def report(
    directory: str, names: tuple[str, ...], form: str, output: str | None, limit: int | None, fail_on: tuple[str, ...]
) -> int:
    """Report on the crawl in DIR, while it runs or after. Without NAME, list the reports; `all` makes every one.

    \b
    gossamer report mycrawl broken
    gossamer report mycrawl broken --fail-on broken -f csv -o broken.csv
    gossamer report mycrawl all -f html -o report.html
    """
    from gossamer.operations.reporting import REPORTS, TROUBLES, report_names, reporting
    from gossamer.query.convert import convert
    from gossamer.query.places import crawl_directory

    if names and (directory in REPORTS or directory == "all") and not Path(directory).exists():
        raise UsageError(f"the directory comes first: gossamer report {names[0]} {directory}")
    place = crawl_directory(directory)
    if not names and not fail_on:
        for known, spec in REPORTS.items():
            print(f"{known:<16} {spec.doc}")
        return 0
    _check(fail_on, TROUBLES)
    asked = report_names(names or fail_on)
    if form in ("csv", "jsonl") and len(asked) > 1:
        raise UsageError(f"{form} holds one report; name one, or write HTML with -f html")
    whole = form in ("csv", "jsonl")
    most = None if whole or limit == 0 else limit or (IN_A_PAGE if form == "html" else SHOWN)
    convert(place)
    with reporting(place) as reporter:
        # CSV and JSON lines hold the first section, and the exit status goes by it.
        made = {name: reporter.make(name, most, 1 if whole else None) for name in asked}
        judged = {name: made.get(name) or reporter.make(name, 0, 1) for name in fail_on}
        with opened(output) as out:
            _write(list(made.values()), form, directory, out)
        status = tell_damage(reporter.damaged)
    found = {name: one.sections[0].total for name, one in judged.items() if one.sections[0].total}
    if found:
        tell(f"--fail-on: {', '.join(f'{name} has {count:,} rows' for name, count in found.items())}")
    return status or (FOUND if found else 0)


def _check(fail_on: Sequence[str], troubles: Sequence[str]) -> None:
    from gossamer.flow.sheet import nearest

    for name in fail_on:
        if name not in troubles:
            raise UsageError(f"--fail-on {name}: name a report that lists trouble{nearest(name, troubles)}")


def _write(made: "Sequence[MadeReport]", form: str, directory: str, out: TextIO) -> None:
    from gossamer.query import printing

    if form == "html":
        from gossamer.query.reports.html import page_of

        when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        out.write(page_of(made, Path(directory).name or directory, when))
    elif form == "csv":
        first = made[0].sections[0]
        printing.write_csv(first.columns, first.rows, out, types=first.types)
    elif form == "jsonl":
        printing.write_jsonl(made[0].sections[0].columns, made[0].sections[0].rows, out)
    else:
        for report_ in made:
            _as_text(report_, out)


def _as_text(made: "MadeReport", out: TextIO) -> None:
    from gossamer.query import printing

    for section in made.sections:
        out.write(f"{section.title}\n\n")
        if section.rows:
            printing.write_table(section.columns, section.rows, out)
        else:
            out.write("none\n")
        left = section.total - len(section.rows)
        out.write(f"and {left:,} more\n\n" if left else "\n")
