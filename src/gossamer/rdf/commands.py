"""Commands for structured data: `gossamer rdf`, `gossamer sparql` and `gossamer serve-sparql`."""

import io
import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import click

from gossamer.cli.fetch import NAMELESS, OPTIONS, fetched, read
from gossamer.cli.helping import crawl_to_read, opened, option, raw_cells, to_file
from gossamer.cli.options import options_named, read_options
from gossamer.cli.saying import canonical_base, say_bytes, tell, tell_plain
from gossamer.crawls.machine import coroutine_runner
from gossamer.engine.sheet import parse
from gossamer.rdf.store.questions import GRAPHS, ROWS, question_in
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.crawls.options import CrawlOptions
    from gossamer.rdf.page import StructuredData
    from gossamer.rdf.store.asking import QuestionLimits

#: Warnings that name nothing but what they are about, in words.
_WORDS = {
    "UnresolvedTerm": "left out, since no vocabulary that the page names has this word",
    "UnresolvedCURIE": "left out, since the page explains no such prefix",
    "PrefixRedefinition": "the page declares a known prefix anew",
    "VocabReferenceError": "this vocabulary is not bundled",
    "UnknownContext": "this JSON-LD context is not known, and left out",
    "JsonLdError": "a script is no JSON-LD",
    "NearlyJson": "a script of JSON-LD is read though it is no JSON",
}


@click.command()
@click.argument("document", metavar="URL|FILE")
@option("--base URL", "Treat a file as the page of this URL.", default="")
@option("--content-type TYPE", "Treat a file as this media type, as if a server had said so.", default="")
@option(
    "--format form",
    "Write this format.",
    type=click.Choice(("nquads", "turtle", "jsonld")),
    default="nquads",
    show_default=True,
)
@option("--drop RULE...", "Also drop triples with this predicate or link type (repeatable).")
@option("--keep RULE...", "Keep triples that this rule of the filter would drop (repeatable).")
@option("--all everything", "Drop only triples that --drop names.")
@option("--expand", "Add the triples that bundled vocabularies state about the names that the page uses.")
@options_named(OPTIONS)
def rdf(
    document: str,
    base: str,
    content_type: str,
    form: str,
    drop: tuple[str, ...],
    keep: tuple[str, ...],
    everything: bool,
    expand: bool,
    **given: Any,
) -> int:
    """Write the triples of one page: its RDFa, JSON-LD and microdata.

    A URL is fetched as a crawl with this seed would fetch it; a redirect is shown, not followed. `-` reads standard
    input. Warnings and the number of dropped triples go to standard error. Only the page is ever fetched.

    Exit status: 0 all went well, 2 wrong usage, 4 a URL gave no document.
    """
    options = read_options(given, None)
    if base:
        base = canonical_base(base)
    from gossamer.rdf.page import DROPPED

    rules = ((frozenset() if everything else DROPPED) | set(drop)) - set(keep)
    with coroutine_runner() as runner:
        url, data = runner.run(_read(document, base, content_type, rules, expand, options))
    if data is None:
        return 4
    from gossamer.rdf.store.graphs import quads, write_graph

    out = io.StringIO()
    write_graph(quads(data.triples, url, data.counts), form, out)
    say_bytes((out.getvalue().encode(),))
    for warned in data.warnings:
        said = _WORDS.get(warned.kind)
        tell(f"{said}: {warned.about} ({warned.kind})" if said else f"{warned.kind}: {warned.about}")
    named = Counter(warned.kind for warned in data.warnings)
    for kind, count in sorted((data.counts - named).items()):
        more = f"{count}{' more' if kind in named else ''}"
        tell(f"{said}: {more} ({kind})" if (said := _WORDS.get(kind)) else f"{kind}: {more}")
    if data.dropped:
        by_rule = ", ".join(f"{rule} {count}" for rule, count in data.dropped.most_common())
        tell(f"dropped {data.dropped.total()} (see --all): {by_rule}")
    return 0


async def _read(
    name: str, base: str, content_type: str, rules: Collection[str], expand: bool, options: "CrawlOptions"
) -> "tuple[str, StructuredData | None]":
    """The URL of a page and what it says; nothing where a server gave no document, which is told.
    Raises UsageError: what is named is no page."""
    from gossamer.analysis.inspecting import Inspecting
    from gossamer.crawls.identity import token_of, user_agent

    async with Inspecting(token_of(user_agent(options))) as inspecting:
        if "://" in name:
            url, response = await fetched(name, options)
            if not response.body:
                tell(f"{url}: no document ({response.outcome}{f', {response.error}' if response.error else ''})")
                return url, None
        else:
            content = sys.stdin.buffer.read() if name == "-" else None
            url, response = read(NAMELESS if name == "-" else name, content, content_type)
            url = base or url
        data = await inspecting.structured(url, response, rules=rules, expanding=expand)
    if data is None:
        raise UsageError(f"{name} is not an HTML page; if it is one, say so with --content-type text/html")
    return url, data


def _limited(command: Callable[..., Any]) -> Callable[..., Any]:
    most = option("--memory SIZE", "Let a query use at most this much memory.", default="1GB", show_default=True)
    return option("--timeout TIME", "Stop a query after this long.", default="60s", show_default=True)(most(command))


@click.command()
@crawl_to_read
@click.argument("query", metavar="QUERY")
@option(
    "-f --format form",
    "Write the answer in this format. Default: table; for CONSTRUCT and DESCRIBE, which allow turtle, nquads, "
    "jsonld and rdfxml, it is turtle.",
    type=click.Choice((*ROWS, *GRAPHS)),
)
@to_file
@_limited
@raw_cells
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
    import asyncio

    from gossamer.rdf.store.asking import ask, current_copy
    from gossamer.storage.tables.places import crawl_directory

    place = crawl_directory(directory)
    limits = _limits(timeout, memory)
    question = question_in(form or "", sys.stdin.read() if query == "-" else query, raw=raw)
    with opened(output) as out:

        async def take(piece: bytes) -> None:
            out.buffer.write(piece)

        with current_copy(place, limits.seconds) as copy:
            asyncio.run(ask(copy, question, limits, take))
        out.buffer.flush()
    return 0


def _limits(timeout: str, memory: str) -> "QuestionLimits":
    from gossamer.rdf.store.asking import QuestionLimits

    values = []
    for name, text, unit in (("--timeout", timeout, "s"), ("--memory", memory, "bytes")):
        try:
            values.append(parse(text, unit))
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
        if values[-1] <= 0:
            raise UsageError(f"{name} {text}: give a value above 0")
    return QuestionLimits(values[0], int(values[1]))


@click.command(name="serve-sparql")
@click.argument("directory", metavar="DIR")
@option("--port", "Listen at this port; default: a free one.", type=click.IntRange(0, 65_535), default=0)
@_limited
def serve_sparql(directory: str, port: int, timeout: str, memory: str) -> int:
    """Serve the triples of the crawl in DIR by the SPARQL 1.1 protocol, also while it runs, until it is stopped.

    It listens only on this machine, and changes nothing. It prints its address; the token in the address is new each
    time, and a person who knows it can ask. In a browser the address shows a form.
    """
    from gossamer.query.contract import check_triples
    from gossamer.rdf.store.serving import serve
    from gossamer.storage.tables.places import crawl_directory

    place = crawl_directory(directory)
    check_triples(place)
    limits = _limits(timeout, memory)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        serve(place, port, limits, lambda url: print(url, flush=True))
    except KeyboardInterrupt:
        tell_plain("stopped")
    return 0
