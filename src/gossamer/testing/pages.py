"""Stored pages as fixtures: a processor or handler is tested in one line, without a server.

::

    [item] = prices(stored_document(Path("tests/pages/shop.html"), url="https://shop.test/1"))
    [item] = handled(spider, Path("tests/pages/book.html"), label="book").items

`gossamer cat DIR URL > shop.html` stores a page of a crawl.
"""

from pathlib import Path
from typing import Any

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.parsing.contract import Handled
from gossamer.spiders.handlers import Gathering
from gossamer.spiders.loading import Loadable
from gossamer.spiders.running import in_loop
from gossamer.values.errors import UsageError
from gossamer.values.media_type import sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.request import asking
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import Record, Response, Visit


def stored_document(
    source: str | bytes | Path, *, url: str = "https://example.test/", content_type: str = "", status: int = 200
) -> Document:
    """Return a document as a processor gets it.

    Args:
        source: the markup, the bytes, or the file that holds them.
        url: where it would have come from.
        content_type: as a server would send it, such as `text/html; charset=iso-8859-1`; empty sends none.
        status: of the answer.

    Raises:
        OSError: the file cannot be read.
        UnreadableUrl: the URL is not valid.
    """
    content = (
        source.read_bytes() if isinstance(source, Path) else source.encode() if isinstance(source, str) else source
    )
    if not content_type and isinstance(source, str):
        content_type = "text/html; charset=utf-8"
    headers = (("content-type", content_type),) if content_type else ()
    address = canonical(url)
    response = Response(Outcome.OK, status=status, headers=headers, body=content)
    visit = Visit(task=Task(address, host_of(address)), response=response, mime=sniff_media_type(content, content_type))
    return Document(visit)


def handled(
    spider: Loadable,
    source: str | bytes | Path,
    *,
    url: str = "https://example.test/",
    label: str = "",
    data: object = None,
    content_type: str = "",
    status: int = 200,
) -> Handled:
    """Run the handler of a stored page. The result has its `items`, each with a `value`, and its requests in `found`.

    Args:
        spider: the spider. The handler that would get the page in a crawl runs.
        source: the markup, the bytes, or the file that holds them.
        url: the URL of the page, which chooses the handler.
        label: of the request.
        data: the data of the request.
        content_type: as a server would send it; empty sends none.
        status: of the answer.

    Raises:
        UsageError: no handler gets this page, or it yields a value that cannot be kept.
        Exception: the exception of the handler, `gossamer.Retry` included.
    """
    import asyncio  # a test of a processor needs none

    document = stored_document(source, url=url, content_type=content_type, status=status)
    task = msgspec.structs.replace(document.visit.task, request=asking(label, data, 0, "", ""))
    keeps_sessions = bool(spider.sessions.count)
    answer = msgspec.structs.replace(document.visit.response, session="1" if keeps_sessions else "")
    visit = msgspec.structs.replace(document.visit, task=task, response=answer)
    plan = spider.handlers.of_page(label, visit.url, visit.media_type)
    if plan is None:
        raise UsageError(
            f"no handler gets {visit.url} of type {visit.media_type or 'unknown'} with the label {label!r}"
        )
    labels = spider.handlers.labels
    gathering = Gathering(visit.url, labels, keeps_sessions=keeps_sessions)
    gather: Any = in_loop(plan, Page(Record(visit), document=Document(visit), labels=labels), gathering)
    asyncio.run(gather)
    return gathering.handled()
