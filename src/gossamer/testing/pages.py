"""Stored pages as fixtures: a processor or handler is tested in one line, without a server.

::

    [item] = prices(stored_document(Path("tests/pages/shop.html"), url="https://shop.test/1"))

`gossamer cat DIR URL > shop.html` stores a page of a crawl.
"""

from pathlib import Path

from gossamer.model.mime import sniff
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import canonical, host_of
from gossamer.model.visit import Response, Visit
from gossamer.reading.document import Document


def stored_document(
    source: str | bytes | Path, *, url: str = "https://example.test/", content_type: str = "", status: int = 200
) -> Document:
    """A document as a processor gets it.

    Args:
        source: the markup, the bytes, or the file that holds them.
        url: where it would have come from.
        content_type: as a server would say it, as `text/html; charset=iso-8859-1`; empty says nothing.
        status: of the answer.

    Raises:
        OSError: the file cannot be read.
        UnreadableUrl: the URL is none.
    """
    content = (
        source.read_bytes() if isinstance(source, Path) else source.encode() if isinstance(source, str) else source
    )
    if not content_type and isinstance(source, str):
        content_type = "text/html; charset=utf-8"
    headers = (("content-type", content_type),) if content_type else ()
    address = canonical(url)
    response = Response(Outcome.OK, status=status, headers=headers, body=content)
    visit = Visit(task=Task(address, host_of(address)), response=response, mime=sniff(content, content_type))
    return Document(visit)
