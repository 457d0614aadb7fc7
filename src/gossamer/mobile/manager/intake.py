"""Batches of crawlers, judged before anything of them is believed, and made into visits. Pure (design question 20).

Place in the flow: the manager has a batch from a runtime that a person configured, and whom nobody trusts beyond the hosts that
were granted. A batch that breaks a rule is refused whole: an honest runtime makes none. What passes are visits like any other.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from gossamer.mobile.crawler import (
    ERROR_ROW,
    TOLD_ERRORS,
    BroughtPage,
    CrawlerBatch,
    IrrelevantRow,
    MobileCrawler,
)
from gossamer.mobile.manager.book import CrawlerRecord
from gossamer.values.agents import CLAIM
from gossamer.values.errors import UnreadableUrl
from gossamer.values.outcome import Outcome
from gossamer.values.task import ANNOUNCED, REVISIT, ROBOTS, Task
from gossamer.values.url import canonical, host_of, scheme_of
from gossamer.values.visit import ORDER, BroughtForm, Found, Item, Link, MobileOrigin, Response, Visit, sha1_base32

#: Relations that a page may have been found by: words, and none that means something else to the commit.
_RELATION = re.compile(r"[a-z][a-z0-9 :._-]{0,99}")
_RESERVED = frozenset({ROBOTS, ANNOUNCED, REVISIT, ORDER, CLAIM})
_MIME = re.compile(r"[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}")

#: Bytes that may come home beyond the program's limit: the last batch is full, and was begun before the limit.
_SLACK: Final = 128 << 20

#: The kind of items that elements of pages become.
ELEMENT = "element"

#: Fields that speak of bytes that were on a wire, and are not here.
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class BatchRefused(Exception):
    """A batch that home does not take. The reason is the name that it is counted by."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class KnownAtHome(msgspec.Struct, frozen=True):
    """Look-ups of the manager while a batch is made into visits."""

    task: Callable[[str, str], Task | None]
    """URL and host -> the task that waits for it, if one does."""
    owner: Callable[[str, str], str]
    """Digest and URL -> the URL of an earlier document with these bytes; empty where there is none."""


def check_batch(batch: CrawlerBatch, crawler: MobileCrawler, record: CrawlerRecord, size: int) -> None:
    """Refuse a batch that its crawler cannot have made.

    Args:
        batch: as it was unpacked.
        crawler: as it was sent.
        record: where its journey stands.
        size: bytes of the batch, unpacked.

    Raises:
        BatchRefused: says what is wrong.
    """
    program = crawler.program
    if (batch.program, batch.crawler, batch.sequence) != (program.digest, crawler.id, record.next):
        raise BatchRefused("sequence", f"batch {batch.sequence} of {batch.crawler[:64]!r}; {record.next} is next")
    if record.bytes + size > program.limits.brought + _SLACK:
        raise BatchRefused("too_much", f"more than the {program.limits.brought} bytes that it may bring")
    if record.external + len(batch.external) > program.limits.external:
        raise BatchRefused("too_much", f"more than the {program.limits.external} external URLs that it may bring")
    if len(batch.depths) != (0 if program.limits.depth is None else len(batch.external)):
        raise BatchRefused("forged", "depths of external URLs do not fit these")
    if batch.summary is None and not (batch.pages or batch.rows or batch.external):
        raise BatchRefused("forged", "an empty batch: they could go on without end")
    for row in batch.rows:
        if not (program.bring.errors if _error_of(row) else program.bring.irrelevant == "rows"):
            raise BatchRefused("forged", f"{row.url[:200]}: a row that was not asked for")
        _check_url(row.url, record)
    for page in batch.pages:
        _check_url(page.url, record)
        _check_page(page, crawler, record)
    for url in batch.external:
        if not _is_canonical(url):
            raise BatchRefused("forged", f"{url[:200]!r} is no canonical URL of http or https")
    summary = batch.summary
    if summary is not None and max(summary.irrelevant, summary.fetched) > program.limits.urls + len(program.seeds):
        raise BatchRefused("forged", "the summary counts more documents than there can be")


def _is_canonical(url: str) -> bool:
    try:
        return scheme_of(url) in ("http", "https") and canonical(url) == url and bool(host_of(url))
    except UnreadableUrl:
        return False


def _check_url(url: str, record: CrawlerRecord) -> None:
    if not _is_canonical(url):
        raise BatchRefused("forged", f"{url[:200]!r} is no canonical URL of http or https")
    if host_of(url) not in record.hosts:
        raise BatchRefused("not_granted", f"{url[:200]} is of a host that the crawler was not sent to")


def _check_page(page: BroughtPage, crawler: MobileCrawler, record: CrawlerRecord) -> None:
    program = crawler.program
    for url in filter(None, (page.source, page.duplicate_of)):
        _check_url(url, record)
    if _RELATION.fullmatch(page.relation) is None or page.relation.partition(" ")[0] in _RESERVED:
        raise BatchRefused("forged", f"{page.url[:200]}: a relation of {page.relation[:40]!r}")
    if not 200 <= page.status < 300:
        raise BatchRefused("forged", f"{page.url[:200]}: status {page.status} brings no document")
    if program.limits.depth is not None and page.depth > program.limits.depth:
        raise BatchRefused("forged", f"{page.url[:200]}: {page.depth} links from a seed are too many")
    if page.is_known or not 0 <= page.simhash < 1 << 64:
        raise BatchRefused("forged", f"{page.url[:200]}: a claim that cannot be true")
    if page.whole is None:
        if "whole" in program.bring.parts and page.size and not page.duplicate_of:
            raise BatchRefused("forged", f"{page.url[:200]}: its bytes are missing")
        return
    if "whole" not in program.bring.parts:
        raise BatchRefused("forged", f"{page.url[:200]}: its bytes were not asked for")
    if len(page.whole) != page.size and not page.truncated:
        raise BatchRefused("forged", f"{page.url[:200]}: {len(page.whole)} bytes of {page.size}")
    if not page.truncated and sha1_base32(page.whole) != page.digest:
        raise BatchRefused("forged", f"{page.url[:200]}: its bytes do not have the digest that is claimed")


def visits_of(
    batch: CrawlerBatch, crawler: MobileCrawler, record: CrawlerRecord, known: KnownAtHome, now: float
) -> Iterator[Visit]:
    """The visits of a checked batch: of relevant documents, and of irrelevant ones and errors where rows were asked for.

    Args:
        batch: checked.
        crawler: as it was sent.
        record: of its journey.
        known: what home knows.
        now: seconds since the epoch: when it came. When the document was read, only the runtime could say.
    """
    firsts: dict[str, BroughtPage] = {}
    for page in batch.pages:
        first = firsts.setdefault(page.digest, page) if page.duplicate_of else page
        firsts.setdefault(page.digest, page)
        task = _task_of(page, known)
        brought = MobileOrigin(
            record.id, record.runtime, batch.program, batch.sequence, _form(crawler, page), page.digest, page.size
        )
        yield _visit(page, first, task, brought, known, now)
    for row in batch.rows:
        yield _irrelevant(row, batch, record, known, now)


def _form(crawler: MobileCrawler, page: BroughtPage) -> BroughtForm:
    if "whole" in crawler.program.bring.parts:
        return "whole"
    return "elements" if page.text is None and page.elements else "text"


def _task_of(page: BroughtPage, known: KnownAtHome) -> Task:
    """The task as home knows it, where it does: what it was found on is no claim then."""
    host = host_of(page.url)
    task = known.task(page.url, host)
    if task is None:
        return Task(page.url, host, page.depth, page.source, page.relation)
    return msgspec.structs.replace(task, depth=min(task.depth, page.depth))


def _visit(
    page: BroughtPage, first: BroughtPage, task: Task, brought: MobileOrigin, known: KnownAtHome, now: float
) -> Visit:
    outcome = Outcome.TRUNCATED if page.truncated else Outcome.OK
    fields = tuple((name.lower(), value) for name, value in page.headers if name.lower() not in _OF_THE_WIRE)
    if not any(name == "content-type" for name, _ in fields):
        fields = (*fields, ("content-type", page.mime if _MIME.fullmatch(page.mime) else "application/octet-stream"))
    response = Response(
        outcome,
        page.status,
        headers=fields,
        body=_body(first, brought),
        started=now,
        cut="length" if page.truncated else "",
        brought=brought,
    )
    visit = Visit(task, response, items=tuple(_items(first, page.url)), trouble=page.trouble)
    if not brought.is_part:
        return visit if response.body or not page.duplicate_of else _repeated(visit, page, known)
    is_followed = page.is_expanded
    return msgspec.structs.replace(
        visit,
        mime=page.mime if _MIME.fullmatch(page.mime) else "",
        base=page.url,
        title=page.title,
        charset=page.charset,
        language=page.language,
        simhash=page.simhash,
        duplicate_of=page.duplicate_of,
        found=tuple(_found(page)) if is_followed else (),
        refused=() if is_followed else tuple(_links(page)),
    )


def _repeated(visit: Visit, page: BroughtPage, known: KnownAtHome) -> Visit:
    """A document whose bytes came with an earlier one."""
    owner = known.owner(page.digest, page.url)
    if owner and owner != page.url:
        return msgspec.structs.replace(visit, digest=page.digest, duplicate_of=owner)
    return msgspec.structs.replace(visit, trouble=f"its bytes are those of {page.duplicate_of}, which is not here")


def _body(page: BroughtPage, brought: MobileOrigin) -> bytes:
    if brought.form == "whole":
        return page.whole or b""
    if brought.form == "elements":
        return "\n".join(element.markup for element in page.elements).encode("utf-8", "replace")
    return (page.text or "").encode("utf-8", "replace")


def _found(page: BroughtPage) -> Iterator[Found]:
    for link in page.links:
        yield Found(link.url, link.relation, link.anchor, link.nofollow)


def _links(page: BroughtPage) -> Iterator[Link]:
    for link in page.links:
        if _is_canonical(link.url):
            yield Link(link.url, link.relation, link.anchor, link.nofollow)


def _items(page: BroughtPage, url: str) -> Iterator[Item]:
    """Elements and items of a page, or of the first one with the same bytes."""
    for element in page.elements:
        value: Mapping[str, str] = {
            "selector": element.selector,
            "text": element.text,
            "markup": element.markup,
        }
        yield Item(ELEMENT, url, value)
    for item in page.items:
        try:
            yield Item(item.kind, url, msgspec.json.decode(item.value))
        except (msgspec.DecodeError, RecursionError):
            raise BatchRefused("forged", f"{page.url[:200]}: an item that is no JSON") from None


def _error_of(row: IrrelevantRow) -> Outcome | None:
    """The error that a row tells of; None where it is one of a document."""
    name = row.rule.removeprefix(ERROR_ROW) if row.rule.startswith(ERROR_ROW) else ""
    return next((outcome for outcome in TOLD_ERRORS if outcome == name), None)


def _irrelevant(
    row: IrrelevantRow, batch: CrawlerBatch, record: CrawlerRecord, known: KnownAtHome, now: float
) -> Visit:
    host = host_of(row.url)
    task = known.task(row.url, host) or Task(row.url, host)
    brought = MobileOrigin(record.id, record.runtime, batch.program, batch.sequence, "row", "", row.size)
    error = _error_of(row)
    outcome, why = (error, "") if error else (Outcome.IRRELEVANT, row.rule)
    response = Response(outcome, row.status, started=now, error=why, brought=brought)
    return Visit(task, response, mime=row.mime if _MIME.fullmatch(row.mime) else "")
