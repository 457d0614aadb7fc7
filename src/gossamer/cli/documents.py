"""Documents that a person names on the command line: a URL, a file, or standard input.

Place in the flow: `gossamer inspect` and `gossamer rdf` take their documents from here.
"""

import mimetypes
from pathlib import Path

from gossamer.analysis.inspecting import answer_of
from gossamer.crawls.fetching import Fetching
from gossamer.crawls.options import CrawlOptions
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.url import canonical
from gossamer.values.visit import Response

#: Name of a document that came by standard input, where no base was given.
NAMELESS = "about:blank"


async def fetched(text: str, options: CrawlOptions) -> tuple[str, Response]:
    """The canonical form of a URL, and the answer to one request for it.

    Raises:
        UsageError: it is no URL.
    """
    fetching = Fetching(text, options)
    async with fetching:
        return fetching.url, await fetching.fetch()


def read(name: str, content: bytes | None, content_type: str) -> tuple[str, Response]:
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


def canonical_base(text: str) -> str:
    """The value of `--base` in canonical form.

    Raises:
        UsageError: it is no URL.
    """
    try:
        return canonical(text)
    except UnreadableUrl as error:
        raise UsageError(f"--base: {error}") from None
