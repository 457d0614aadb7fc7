"""`gossamer inspect`: what a crawl would see in a document, as one line of JSON.

Place in the flow: the command line's door to the process and link stages, beside `crawl`.
"""

import asyncio
import mimetypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from gossamer.assembly.compiling import token_of, user_agent
from gossamer.assembly.fetching import Fetching
from gossamer.assembly.inspecting import Inspecting, answer_of, looks_like_urls
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.tuning import loop_factory
from gossamer.cli.fetch import OPTIONS
from gossamer.cli.options import options_named, read_options
from gossamer.cli.telling import tell
from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.url import canonical
from gossamer.model.visit import Response
from gossamer.stores.printable import printable

#: Name of a document that came by standard input, where no base was given.
_NAMELESS = "about:blank"


@click.command()
@click.argument("documents", metavar="URL|FILE...", nargs=-1, required=True)
@click.option("--base", metavar="URL", default="", help="Resolve the links of files against this URL.")
@click.option("--content-type", metavar="TYPE", default="", help="Take files for this, as if a server had said so.")
@click.option("--page-requisites", is_flag=True, help="Also list what a browser would fetch to show the page.")
@options_named(OPTIONS)
def inspect(documents: tuple[str, ...], base: str, content_type: str, page_requisites: bool, **given: Any) -> int:
    """Say what a crawl would see in documents: one line of JSON for each.

    URLs are fetched as a crawl with this seed would fetch them; redirects are told, not followed. `-` is standard input:
    a document, or URLs, one on each line.

    The line tells the media type that the bytes show, charset, title, language, robots tags, canonical URL, links (url,
    relation, anchor, nofollow), length of the text, fingerprints and structured data.

    Exit status: 0; 2 where something given cannot be used; 4 where a URL gave no answer.
    """
    options = read_options(given, None)
    if base:
        base = _canonical(base)
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
                    url, response = await _fetched(name, options)
                    status = status if response.headers or response.response_head else 4
                    seen = await inspecting.inspect(url, response)
                else:
                    url, response = _read(name, content, content_type)
                    seen = await inspecting.inspect(base if content is not None and base else url, response, base)
            except UsageError as error:
                tell(str(error))
                status = 2
                continue
            print(printable(msgspec.json.encode(seen)).decode(), flush=True)
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
            yield _NAMELESS, content


async def _fetched(text: str, options: CrawlOptions) -> tuple[str, Response]:
    fetching = Fetching(text, options)
    async with fetching:
        return fetching.url, await fetching.fetch()


def _read(name: str, content: bytes | None, content_type: str) -> tuple[str, Response]:
    """A file, or what came by standard input, as an answer.

    Raises:
        UsageError: the file cannot be read.
    """
    if content is not None:
        return name, answer_of(content, content_type)
    path = Path(name)
    try:
        content = path.read_bytes()
    except OSError as error:
        hint = "; a URL begins with http:// or https://" if not path.exists() else ""
        raise UsageError(f"{name}: cannot be read: {error.strerror or error}{hint}") from None
    return path.resolve().as_uri(), answer_of(content, content_type or mimetypes.guess_type(name)[0] or "")


def _canonical(text: str) -> str:
    try:
        return canonical(text)
    except UnreadableUrl as error:
        raise UsageError(f"--base: {error}") from None
