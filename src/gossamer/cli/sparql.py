"""`gossamer sparql`: SPARQL over the triples of a crawl, while it runs and after."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from gossamer.flow.quantities import parse
from gossamer.model.errors import UsageError

#: The forms, as `gossamer.query.triples.questions` has them, which help must not import.
FORMS = ("table", "csv", "tsv", "json", "xml", "turtle", "nquads", "jsonld", "rdfxml")


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("query", metavar="QUERY")
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="Write the answer in this format. Default: table; for CONSTRUCT and DESCRIBE, which allow turtle, nquads, "
    "jsonld and rdfxml, it is turtle.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option("--timeout", metavar="TIME", default="60s", show_default=True, help="Stop a query after this long.")
@click.option(
    "--memory", metavar="SIZE", default="1GB", show_default=True, help="Let a query use at most this much memory."
)
@click.option(
    "--raw",
    is_flag=True,
    help="Write CSV without an apostrophe before cells that a spreadsheet would run as a formula.",
)
def sparql(
    directory: str, query: str, form: str | None, output: str | None, timeout: str, memory: str, raw: bool
) -> int:
    """Ask the triples of the crawl in DIR one question in SPARQL, also while it runs.

    Every page has a graph, named by its URL; a query without GRAPH asks all of them together. The prefixes of RDFa,
    such as schema, foaf, dc and rdf, need no PREFIX. A query can read only this crawl. If QUERY is `-`, it is read from
    standard input.

    Exit status: 0 the query was answered, 2 it cannot be answered, 4 it needs more time or memory than it may use, 5
    the store cannot be read.

    \b
    gossamer sparql crawl "SELECT ?type (count(*) AS ?n) { ?thing a ?type } GROUP BY ?type ORDER BY DESC(?n)"
    gossamer sparql crawl "SELECT ?page ?name { GRAPH ?page { ?x a schema:Product; schema:name ?name } }" -f csv
    gossamer sparql crawl "DESCRIBE <https://example.org/#me>"
    """
    from gossamer.query.places import crawl_directory
    from gossamer.query.triples.asking import QuestionLimits
    from gossamer.query.triples.questions import question_in

    place = crawl_directory(directory)
    limits = QuestionLimits(
        seconds=quantity("--timeout", timeout, "s"), memory=int(quantity("--memory", memory, "bytes"))
    )
    question = question_in(form or "", sys.stdin.read() if query == "-" else query, raw=raw)
    if output is None:
        _answer(place, question, limits, sys.stdout.buffer)
        return 0
    try:
        file = Path(output).open("wb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    with file:
        _answer(place, question, limits, file)
    return 0


def quantity(option: str, text: str, unit: str) -> float:
    """What an option says in units.

    Raises:
        UsageError: it is no such quantity.
    """
    try:
        value = parse(text, unit)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
    if value <= 0:
        raise UsageError(f"{option} {text}: give a value above 0")
    return value


def _answer(place: Path, question: Any, limits: Any, out: Any) -> None:
    from gossamer.query.triples.asking import ask
    from gossamer.query.triples.copies import current_copy

    async def take(piece: bytes) -> None:
        out.write(piece)

    with current_copy(place, limits.seconds) as copy:
        asyncio.run(ask(copy, question, limits, take))
    out.flush()
