"""Does a visit bring the same as the one before it? The stage that compares, and the texts that it compares."""

from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.documents.charset import media_type_of
from gossamer.documents.content_coding import undone
from gossamer.documents.document import Document
from gossamer.documents.text import TextChoice
from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.seams import KnownPages, PageTexts
from gossamer.storage.archive.reading import read_record
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import KnownPage, compared, is_judged_by_text
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import HTML_TYPES, Response, Visit

# Texts of pages, read when two versions of a page are compared: the new one as it came, the old one out of the archive.
#
# Place in the flow: the stage `changes` asks for fingerprints where the bytes of a known page differ from those before.


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


# Changes: does this visit bring what the one before brought? Between process and links.
#
# Place in the flow: wired where pages are visited again (`--recrawl`), in the process that has the ledger. Texts are
# compared where bytes differ, so that no page is read for its text before it changes (decision 86).


class Changes(Filter[NoSettings]):
    """Fills in `compared`, and `simhash` of pages whose bytes changed."""

    inbox: In[Visit]
    outbox: Out[Visit]
    pages: Uses[KnownPages]
    texts: Uses[PageTexts]

    #: As content-seen, which may call this in place.
    batch = 8

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for a page that may be known."""
        if visit.is_robots or visit.task.is_marked:
            return (visit,)
        known = self.pages.known(visit.task)
        if known is None:
            return (visit,)
        if is_judged_by_text(known, visit):
            known, visit = self._read(known, visit)
        found = compared(known, visit)
        if found is None:
            return (visit,)
        self.metrics.counters[found.change.value] += 1
        return (msgspec.structs.replace(visit, compared=found),)

    def _read(self, known: KnownPage, visit: Visit) -> tuple[KnownPage, Visit]:
        """Both with the fingerprints of their texts, as far as these can be had."""
        simhash = visit.simhash or self.texts.of_visit(visit)
        if simhash and not known.simhash:
            known = msgspec.structs.replace(known, simhash=self.texts.of_known(visit.url, known))
            self.metrics.counters["texts_read"] += 1
        return known, msgspec.structs.replace(visit, simhash=simhash)
