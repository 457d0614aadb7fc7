"""PDF by PDFium: title, author, text and links of a document, each bounded; and the process that reads them for a command.

Place in the flow: :mod:`gossamer.words.reading` calls :func:`read_pdf` in a parser process of a crawl; commands and the index
ask a :class:`PdfReading`, which has a worker do it. Either process can be killed: PDFium is native code, documents are strangers'.

Promises: no password is tried; what is damaged, locked or endless is named and bounded, and nothing hangs.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from gossamer.documents.document import Document
from gossamer.engine.worker import Caller, Use
from gossamer.engine.workers import Worker, WorkerFailed

#: Pages that are read, characters and links that are kept, and characters of one page.
MAX_PAGES, MAX_CHARACTERS, MAX_LINKS, MAX_PAGE_CHARACTERS = 5_000, 8_000_000, 10_000, 200_000

#: Bytes of a document that is read: it has its table at its end, so all of it is needed, and a worker takes no longer frames.
MAX_BYTES = 60 << 20

#: Seconds that a document may take; and what its process may.
DEADLINE = 60.0
_USE = Use("gossamer.words.pdf:read_apart", memory=1 << 30)

_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?")
# Characters that PDFium writes for a hyphen at the end of a line, and for nothing.
_HYPHENS = str.maketrans({"\ufffe": "-", "\x02": "-", "\0": None, "\r": None})
_PARTED, _COMPOUND = re.compile("(?<!\\w)(\\w++)[\ufffe\x02](\\w++)"), re.compile(r"(?<!\w)\w++-\w++")


class PdfText(msgspec.Struct, frozen=True, omit_defaults=True):
    """The contents of a PDF."""

    title: str = ""
    author: str = ""
    created: str = ""
    """The day, as 2026-03-01."""
    texts: tuple[str, ...] = ()
    """Of each page."""
    links: tuple[str, ...] = ()
    """URLs that pages link to, or that stand in their text."""
    pages: int = 0
    """That the document has."""
    trouble: str = ""
    """`pdf_damaged`, `pdf_encrypted`, `pdf_timeout`, `pdf_cut`, `pdf_large`, `pdf_unavailable`; empty if all of it was read."""

    @property
    def markdown(self) -> str:
        """The text as Markdown: pages with a line between them."""
        return "\n\n---\n\n".join(filter(None, map(str.strip, self.texts)))


def content_of(document: Document) -> bytes:
    """The bytes of a document as far as they are read; longer ones are refused."""
    with document.open() as stream:
        return stream.read(MAX_BYTES + 1)


def read_pdf(content: bytes) -> PdfText:
    """Read a document in this process; a trouble says what was wrong with it."""
    if len(content) > MAX_BYTES:
        return PdfText(trouble="pdf_large")
    try:
        import pypdfium2 as pdfium  # an extra: most crawls read no PDF
    except ImportError:
        return PdfText(trouble="pdf_unavailable")
    try:
        document = pdfium.PdfDocument(content)
        number = len(document)
    except pdfium.PdfiumError as error:
        return PdfText(trouble="pdf_encrypted" if "assword" in str(error) else "pdf_damaged")
    with suppress(pdfium.PdfiumError):
        document.init_forms()
    facts = document.get_metadata_dict()
    texts: list[str] = []
    links: dict[str, None] = {}
    trouble, left = "pdf_cut" if number > MAX_PAGES else "", MAX_CHARACTERS
    for at in range(min(number, MAX_PAGES)):
        try:
            page = document[at]
            text = page.get_textpage()
            texts.append(str(text.get_text_bounded()[: min(MAX_PAGE_CHARACTERS, left)]))
            links |= dict.fromkeys(_links(pdfium.raw, document, page, text))
        except pdfium.PdfiumError:
            trouble = trouble or "pdf_damaged"
            continue
        left -= len(texts[-1])
        if left <= 0 or len(links) >= MAX_LINKS:
            trouble = trouble or ("pdf_cut" if at + 1 < number else "")
            break
    date = _DATE.match(facts.get("CreationDate", ""))
    return PdfText(
        title=_line(facts.get("Title", "")),
        author=_line(facts.get("Author", "")),
        created="-".join(part for part in date.groups() if part) if date else "",
        texts=tuple(_whole_words(texts)),
        links=tuple(links)[:MAX_LINKS],
        pages=number,
        trouble=trouble,
    )


def _whole_words(texts: list[str]) -> Iterator[str]:
    """Texts with the parts of words joined that the end of a line parts; a compound that stands elsewhere keeps its hyphen."""
    compounds = {compound for text in texts for compound in _COMPOUND.findall(text)}

    def joined(match: "re.Match[str]") -> str:
        compound = f"{match[1]}-{match[2]}"
        is_compound = compound in compounds or not match[2][0].isalpha() or match[2][0].isupper()
        return compound if is_compound else match[1] + match[2]

    return (_PARTED.sub(joined, text).translate(_HYPHENS) for text in texts)


def _line(text: str) -> str:
    return " ".join(text.translate(_HYPHENS).split())[:1_000]


def _links(raw: Any, document: Any, page: Any, text: Any) -> "list[str]":
    """The URLs of a page: those of its annotations, then those in its text."""
    import ctypes

    found: list[str] = []
    place, link = ctypes.c_int(0), raw.FPDF_LINK()
    while len(found) < MAX_LINKS and raw.FPDFLink_Enumerate(page, place, link):
        action = raw.FPDFLink_GetAction(link)
        size = raw.FPDFAction_GetURIPath(document, action, None, 0) if action else 0
        if 1 < size <= 1 << 14:
            buffer = ctypes.create_string_buffer(size)
            raw.FPDFAction_GetURIPath(document, action, buffer, size)
            found.append(buffer.value.decode("utf-8", "replace"))
    web = raw.FPDFLink_LoadWebLinks(text)
    try:
        for at in range(min(raw.FPDFLink_CountWebLinks(web), MAX_LINKS)):
            size = raw.FPDFLink_GetURL(web, at, None, 0)
            if 1 < size <= 1 << 13:
                letters = (ctypes.c_ushort * size)()
                raw.FPDFLink_GetURL(web, at, letters, size)
                found.append(bytes(letters)[:-2].decode("utf-16-le", "replace"))
    finally:
        raw.FPDFLink_CloseWebLinks(web)
    return found


class PdfRequest(msgspec.Struct, frozen=True):
    """A document for the worker."""

    content: bytes


def read_apart(request: PdfRequest, caller: Caller) -> PdfText:
    """The use of a worker: one document read."""
    return read_pdf(request.content)


class PdfReading:
    """Reads documents in one further process, one after the other; it is begun anew when it is killed. For code without a loop."""

    def __init__(self, deadline: float = DEADLINE) -> None:
        self._deadline = deadline
        self._runner: asyncio.Runner | None = None
        self._worker: Worker | None = None

    def __call__(self, document: Document) -> PdfText:
        return self.read(content_of(document))

    def read(self, content: bytes) -> PdfText:
        """The same as :func:`read_pdf`."""
        if len(content) > MAX_BYTES:
            return PdfText(trouble="pdf_large")
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(self._read(content))

    async def _read(self, content: bytes) -> PdfText:
        try:
            if self._worker is None:
                self._worker = await Worker.start(_USE)
                await self._worker.ready()
            async with asyncio.timeout(self._deadline):
                await self._worker.put(PdfRequest(content))
                return msgspec.msgpack.decode(await self._worker.answer(), type=PdfText)
        except (TimeoutError, WorkerFailed, ValueError) as error:
            await self._end()
            is_late = isinstance(error, TimeoutError) or getattr(error, "reason", "") == "time"
            return PdfText(trouble="pdf_timeout" if is_late else "pdf_damaged")

    async def _end(self) -> None:
        if self._worker is not None:
            worker, self._worker = self._worker, None
            await worker.end()

    def close(self) -> None:
        if self._runner is not None:
            self._runner.run(self._end())
            self._runner.close()
            self._runner = None
