"""Texts of pages, read when two versions of a page are compared: the new one as it came, the old one out of the archive.

Place in the flow: the stage `changes` asks for fingerprints where the bytes of a known page differ from those before.
"""

from pathlib import Path
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.errors import CrawlDirectoryError
from gossamer.model.known import KnownPage
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import HTML_TYPES, Response, Visit
from gossamer.reading.coding import undone
from gossamer.reading.document import Document
from gossamer.reading.sniffing import media_type_of
from gossamer.reading.text import TextChoice
from gossamer.stores.warc_reading import read_record

#: Bytes of an archived answer that is read, since the crawl waits for it. Fingerprints are made of the first mebibyte of markup.
MOST_READ = 2 << 20


class TextsSheet(Sheet, frozen=True):
    """Settings of :class:`ComparedTexts`."""

    directory: Annotated[str, setting("Read the archive of the crawl in this directory.", names="a folder")] = ""
    text: Annotated[
        TextChoice,
        setting("Compare the prose of pages, without menus and code (`main`), or every word that readers see (`all`)."),
    ] = "main"


class ComparedTexts(Provider[TextsSheet]):
    """Computes fingerprints of new and archived pages. Contract: `revisiting.PageTexts`."""

    def of_visit(self, visit: Visit) -> int:
        """That of a page that was just fetched."""
        return Document(visit, choice=self.sheet.text).fingerprint if visit.media_type in HTML_TYPES else 0

    def of_known(self, url: str, page: KnownPage) -> int:
        """That of the page as the archive keeps it. Records of other bytes, after a deletion as it may be, say nothing."""
        if page.body_at is None:
            return 0
        try:
            record = read_record(Path(self.sheet.directory), page.body_at, MOST_READ)
        except (CrawlDirectoryError, OSError):
            self.metrics.count("unreadable")
            return 0
        if record.kind == "revisit" or record.fields.get("warc-payload-digest") != f"sha1:{page.digest}":
            self.metrics.count("unreadable")
            return 0
        body = undone(record.headers, record.body)
        if not body.is_readable:
            return 0
        response = Response(Outcome.OK, record.status, headers=record.headers, body=record.body, decoded=body.data)
        return self.of_visit(Visit(Task(url, host_of(url)), response, mime=media_type_of(response)))
