"""`gossamer inspect`: what a crawl would see in a document, as one line of JSON.

Place in the flow: the command line's door to the process and link stages, beside `crawl`.
"""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import click

from gossamer.assembly.identity import token_of, user_agent
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.tuning import loop_factory
from gossamer.cli.documents import NAMELESS, canonical_base, fetched, read
from gossamer.cli.fetch import OPTIONS
from gossamer.cli.options import options_named, read_options
from gossamer.cli.saying import say_json
from gossamer.cli.telling import tell
from gossamer.model.errors import UsageError
from gossamer.operations.inspecting import Inspecting, looks_like_urls


@click.command()
@click.argument("documents", metavar="URL|FILE...", nargs=-1, required=True)
@click.option("--base", metavar="URL", default="", help="Resolve the links of files against this URL.")
@click.option(
    "--content-type", metavar="TYPE", default="", help="Treat files as this media type, as if a server had said so."
)
@click.option(
    "--page-requisites",
    is_flag=True,
    help="Also list the style sheets, images and other files that a browser would fetch to show the page.",
)
@options_named(OPTIONS)
def inspect(documents: tuple[str, ...], base: str, content_type: str, page_requisites: bool, **given: Any) -> int:
    """Show what a crawl would see in documents: one line of JSON for each.

    URLs are fetched as a crawl with this seed would fetch them; redirects are shown, not followed. `-` reads standard
    input: a document, or URLs, one a line.

    The line has the media type (judged by the bytes), charset, title, language, robots tags, canonical URL, links (url,
    relation, anchor, nofollow), length of the text, fingerprints and structured data.

    Exit status: 0 all went well, 2 wrong usage, 4 a URL gave no answer.
    """
    options = read_options(given, None)
    if base:
        base = canonical_base(base)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_inspect(documents, base, content_type, page_requisites, options))


async def _inspect(
    documents: tuple[str, ...], base: str, content_type: str, requisites: bool, options: CrawlOptions
) -> int:
    status = 0
    async with Inspecting(token_of(user_agent(options)), requisites=requisites) as inspecting:
        for name, content in _given(documents, content_type):
            try:
                if content is None and "://" in name:
                    url, response = await fetched(name, options)
                    status = status if response.headers or response.response_head else 4
                    seen = await inspecting.inspect(url, response)
                else:
                    url, response = read(name, content, content_type)
                    seen = await inspecting.inspect(base if content is not None and base else url, response, base)
            except UsageError as error:
                tell(str(error))
                status = 2
                continue
            say_json(seen)
    return status


def _given(documents: tuple[str, ...], content_type: str) -> Iterator[tuple[str, bytes | None]]:
    """URLs and names of files, or a name with the document itself."""
    for name in documents:
        if name != "-":
            yield name, None
            continue
        content = sys.stdin.buffer.read()
        if not content_type and looks_like_urls(content):
            yield from ((line.decode(), None) for line in content.split())
        else:
            yield NAMELESS, content
