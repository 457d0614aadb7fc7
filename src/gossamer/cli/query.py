"""`gossamer query`: SQL over the tables of a crawl, while it runs and after."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.output import opened, tell_damage
from gossamer.cli.telling import tell
from gossamer.model.errors import UsageError

if TYPE_CHECKING:
    from gossamer.query.database import Database

#: An empty answer would look like a page without links.
_NO_LINKS = (
    "the table links has no rows: the crawl found no links, or does not keep them, "
    """because its setting log.tables leaves out "links\""""
)


@click.command(name="query")
@click.argument("directory", metavar="DIR")
@click.argument("sql", metavar="SQL")
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["table", "csv", "jsonl", "parquet"]),
    default="table",
    show_default=True,
    help="Write the answer in this format.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option(
    "--raw",
    is_flag=True,
    help="Write CSV without an apostrophe before cells that a spreadsheet would run as a formula.",
)
def query(directory: str, sql: str, form: str, output: str | None, raw: bool) -> int:
    """Ask the tables of the crawl in DIR one question in SQL (DuckDB's), also while it runs.

    There are the tables pages, links, hosts, items, and others that the crawl kept; docs/reference/tables.md lists
    their columns. They show the latest visit of each URL; pages_all, links_all and items_all show every visit. The
    command names damaged files, leaves them out, and exits with 5. If SQL is `-`, it is read from standard input. A
    query can read only these tables, no other file and no network.

    \b
    gossamer query crawl "SELECT outcome, count(*) FROM pages GROUP BY 1 ORDER BY 2 DESC"
    gossamer query crawl "SELECT target, count(*) FROM links GROUP BY 1 ORDER BY 2 DESC LIMIT 20"
    gossamer query crawl "DESCRIBE pages"
    """
    from gossamer.query.convert import convert
    from gossamer.query.database import Database
    from gossamer.query.places import crawl_directory

    place = crawl_directory(directory)
    question = sys.stdin.read() if sql == "-" else sql
    convert(place)
    with Database(place) as database:
        if form == "parquet":
            _parquet(database, question, output)
        else:
            _text(database, question, form, output, raw)
        damaged = database.damage_to(question)
        if not damaged and "links" in database.without_rows and re.search(r"\blinks(_all)?\b", question, re.IGNORECASE):
            tell(_NO_LINKS)
        return tell_damage(damaged)


def _text(database: "Database", question: str, form: str, output: str | None, raw: bool) -> None:
    from gossamer.query import printing

    answer = database.ask(question)
    with opened(output) as out:
        if form == "csv":
            printing.write_csv(answer.columns, answer, out, types=answer.types, raw=raw)
        elif form == "jsonl":
            printing.write_jsonl(answer.columns, answer, out)
        else:
            printing.write_table(answer.columns, answer, out)


def _parquet(database: "Database", question: str, output: str | None) -> None:
    from gossamer.stores.scratch import scratch

    if output:
        database.write_parquet(question, Path(output))
        return
    if sys.stdout.isatty():
        raise UsageError("Parquet is not for a terminal; name a file with -o, or pipe it")
    with scratch() as folder:
        path = Path(folder, "answer.parquet")
        database.write_parquet(question, path)
        with path.open("rb") as file:
            while data := file.read(1 << 20):
                sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
