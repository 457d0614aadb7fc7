"""`gossamer rdf`: the triples of one page.

Place in the flow: the command line's door to :mod:`gossamer.rdf`, beside `inspect`.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Collection
from typing import Any

import click

from gossamer.assembly.identity import token_of, user_agent
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.tuning import loop_factory
from gossamer.cli.documents import NAMELESS, canonical_base, fetched, read
from gossamer.cli.fetch import OPTIONS
from gossamer.cli.options import options_named, read_options
from gossamer.cli.saying import say_bytes
from gossamer.cli.telling import tell
from gossamer.model.errors import UsageError
from gossamer.operations.inspecting import Inspecting
from gossamer.rdf.filtering import DROPPED
from gossamer.rdf.page import StructuredData
from gossamer.rdf.writing import FORMATS, serialized


@click.command()
@click.argument("document", metavar="URL|FILE")
@click.option("--base", metavar="URL", default="", help="Treat a file as the page of this URL.")
@click.option(
    "--content-type", metavar="TYPE", default="", help="Treat a file as this media type, as if a server had said so."
)
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), default="nquads", show_default=True, help="Write this format."
)
@click.option(
    "--drop", metavar="RULE", multiple=True, help="Also drop triples with this predicate or link type (repeatable)."
)
@click.option(
    "--keep", metavar="RULE", multiple=True, help="Keep triples that this rule of the filter would drop (repeatable)."
)
@click.option("--all", "everything", is_flag=True, help="Drop only triples that --drop names.")
@click.option(
    "--expand", is_flag=True, help="Add the triples that bundled vocabularies state about the names that the page uses."
)
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
    rules = ((frozenset() if everything else DROPPED) | set(drop)) - set(keep)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        url, data = runner.run(_read(document, base, content_type, rules, expand, options))
    if data is None:
        return 4
    _write(data, form, url)
    _warn(data)
    return 0


async def _read(
    name: str, base: str, content_type: str, rules: Collection[str], expand: bool, options: CrawlOptions
) -> tuple[str, StructuredData | None]:
    """The URL of a page and what it says; nothing where a server gave no document, which is told.

    Raises:
        UsageError: what is named is no page.
    """
    async with Inspecting(token_of(user_agent(options))) as inspecting:
        if "://" in name:
            url, response = await fetched(name, options)
            if not response.body:
                tell(f"{url}: no document ({response.outcome}{f', {response.error}' if response.error else ''})")
                return url, None
        else:
            url, response = read(NAMELESS if name == "-" else name, _standard_input(name), content_type)
            url = base or url
        data = await inspecting.structured(url, response, rules=rules, expanding=expand)
    if data is None:
        raise UsageError(f"{name} is not an HTML page; if it is one, say so with --content-type text/html")
    return url, data


def _standard_input(name: str) -> bytes | None:
    return sys.stdin.buffer.read() if name == "-" else None


def _write(data: StructuredData, form: str, url: str) -> None:
    left_out: Counter[str] = Counter()
    written = serialized(data.triples, form, url, left_out)
    data.counts.update(left_out)
    say_bytes((written,))


def _warn(data: StructuredData) -> None:
    for warned in data.warnings:
        tell(f"{warned.kind}: {warned.about}")
    named = Counter(warned.kind for warned in data.warnings)
    for kind, count in sorted((data.counts - named).items()):
        tell(f"{kind}: {count}{' more' if kind in named else ''}")
    if data.dropped:
        rules = ", ".join(f"{rule} {count}" for rule, count in data.dropped.most_common())
        tell(f"dropped {data.dropped.total()} (see --all): {rules}")
