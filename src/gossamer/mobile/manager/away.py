"""The life of one crawler that is on its way: sent, asked for its batches, acknowledged, until it is home or lost.

Place in the flow: the manager has one :class:`AwayCrawler` for each. It knows the link and the clock; the manager deals with its
batches at home. Every call of a link may be made again, so whatever is killed, the journey goes on where the ledger says. Before
a crawler is sent, the manager asks for an estimate whether it is worth its bytes.

A batch comes from a runtime that a person configured and trusts for nothing beyond the hosts that were granted. :func:`check_batch`
refuses it whole if it breaks a rule, as no honest runtime does; :func:`visits_of` makes visits like any other of the rest (design
question 20).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Literal

import msgspec

from gossamer.engine.unit import Clock
from gossamer.mobile.contract import CrawlerStanding, RuntimeLink, RuntimeRefused, RuntimeUnavailable
from gossamer.mobile.crawler import (
    ERROR_ROW,
    TOLD_ERRORS,
    BroughtPage,
    CrawlerBatch,
    IrrelevantRow,
    MobileCrawler,
    MobileProgram,
    RedirectRow,
)
from gossamer.mobile.manager.lent import CrawlerRecord
from gossamer.mobile.wire import BytesRefused, unpacked
from gossamer.values.agents import CLAIM
from gossamer.values.body import sha1_base32
from gossamer.values.errors import UnreadableUrl
from gossamer.values.outcome import Outcome
from gossamer.values.task import ANNOUNCED, REVISIT, ROBOTS, WANT, Task
from gossamer.values.url import canonical, host_of, scheme_of
from gossamer.values.visit import ORDER, BroughtForm, Found, Item, Link, MobileOrigin, Response, Visit

#: Seconds that one question for a batch waits at the runtime: less than proxies let an exchange last.
ASKED: Final = 20.0

#: Seconds between two tries to reach a runtime: the first, and the longest.
FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 10.0

#: Seconds between two questions to a runtime that answers at once that a crawler has nothing yet.
SHORTEST_WAIT: Final = 0.05

Fate = Literal["home", "lost", "refused"]
"""How a journey ended: all batches are in; nothing more will come; or the runtime did what it may not."""

Take = Callable[[CrawlerRecord, CrawlerBatch, int], Awaitable[CrawlerRecord]]
"""Commits a batch, and gives the record as it stands then; the number is the size of the batch, unpacked."""


class CrawlerEnd(msgspec.Struct, frozen=True):
    """The end of a journey."""

    fate: Fate
    why: str = ""
    is_too_new: bool = False
    """The runtime does not know the version of the crawler."""


class AwayCrawler:
    """One crawler, from the outbox to its end."""

    def __init__(
        self, record: CrawlerRecord, crawler: MobileCrawler, link: RuntimeLink, clock: Clock, lease: float, take: Take
    ) -> None:
        """Ready to go on from where the record stands; after `lease` seconds of home's clock without any word it is lost."""
        self.record = record
        self.crawler = crawler
        self._link = link
        self._clock = clock
        self._lease = lease
        self._take = take
        self._until = record.until
        self._pause = FIRST_PAUSE

    async def travel(self) -> CrawlerEnd:
        is_sent = False
        while True:
            if self._clock.steady() > self.record.ends:
                return CrawlerEnd("lost", "its time is up")
            try:
                if not is_sent and not self.record.is_heard:
                    # One that was heard of is known there already, and is not sent twice (promise 2 of the link).
                    await self._link.send(self.record.id, self.record.data)
                    self._heard()
                is_sent = True
                answer = await self._link.batch(self.record.id, self.record.next, ASKED)
                self._heard()
                end = await self._answered(answer)
                if end is not None:
                    return end
            except RuntimeUnavailable as error:
                if self._clock.steady() > self._until:
                    return CrawlerEnd("lost", f"nothing was heard of the runtime: {error}")
                await self._clock.sleep(self._pause)
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
            except RuntimeRefused as error:
                told = f"the runtime refuses it ({error.reason}): {error}"
                return CrawlerEnd("refused", told, error.reason == "version" and not self.record.is_heard)
            except (BatchRefused, BytesRefused) as error:
                return CrawlerEnd("refused", f"what the runtime sent is refused ({error.reason}): {error}")

    async def _answered(self, answer: bytes | CrawlerStanding) -> CrawlerEnd | None:
        """Take a batch in, or see where the crawler stands; the end, if that is one."""
        if isinstance(answer, bytes):
            batch, size = await asyncio.to_thread(_unpacked, answer)
            self.record = await self._take(self.record, batch, size)
            is_last = batch.summary is not None
            # The runtime may forget what is committed. A word that is lost does no harm: the next one says the same.
            try:
                await self._link.acknowledge(self.record.id, self.record.next - 1)
            except (RuntimeUnavailable, RuntimeRefused):
                if not is_last:
                    raise
            return CrawlerEnd("home") if is_last else None
        if answer.has_ended:
            why = f"{answer.state}{f' ({answer.reason})' if answer.reason else ''}{f': {answer.told}' if answer.told else ''}"
            return CrawlerEnd("lost", f"the runtime says that it is {why}"[:500])
        await self._clock.sleep(SHORTEST_WAIT)
        return None

    async def cancel(self) -> None:
        with suppress(RuntimeUnavailable, RuntimeRefused):
            await self._link.cancel(self.record.id)

    def _heard(self) -> None:
        self._until = self._clock.steady() + self._lease
        self._pause = FIRST_PAUSE


def _unpacked(frame: bytes) -> tuple[CrawlerBatch, int]:
    batch = unpacked(frame, CrawlerBatch)
    return batch, len(msgspec.msgpack.encode(batch))


# Costs of a crawler and of fetching instead. Fiedler and Hammer (2000, section 5) measure the two: a crawler pays for its program
# whatever it finds, a stationary crawl for every page.

#: Bytes of a page as a server sends it with gzip, and of request and heads around it, where nothing is known: medians of the
#: documentation sites that `gossamer bench mobile` crawls.
USUAL_PAGE: Final = 6_000
EXCHANGE: Final = 700

#: Bytes of a journey beside the program and what is brought: heads of the messages, the summary.
JOURNEY: Final = 4_000

#: A whole page that is brought home takes about this share of what gzip takes: frames of 8 MB know more than one page.
OF_GZIP: Final = 0.5


def is_worth_sending(program: int, pages: int | None, page: int = USUAL_PAGE) -> bool:
    """Whether a crawler of so many bytes is estimated to cost less than fetching, though every page should be relevant. There
    are at most `pages`, or an unknown number; a server sends each as `page` bytes, packed."""
    if pages is None:
        return True
    return program + JOURNEY + pages * page * OF_GZIP < pages * (page + EXCHANGE)


#: Relations that a page may have been found by: words, and none that means something else to the commit.
_RELATION = re.compile(r"[a-z][a-z0-9 :._-]{0,99}")
_RESERVED = frozenset({ROBOTS, ANNOUNCED, REVISIT, ORDER, CLAIM, WANT.strip()})
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
    """Refuse a batch, of `size` bytes unpacked, that its crawler cannot have made where its journey stands. Raises
    BatchRefused: says what is wrong."""
    program = crawler.program
    if (batch.program, batch.crawler, batch.sequence) != (program.digest, crawler.id, record.next):
        raise BatchRefused("sequence", f"batch {batch.sequence} of {batch.crawler[:64]!r}; {record.next} is next")
    if record.bytes + size > program.limits.brought + _SLACK:
        raise BatchRefused("too_much", f"more than the {program.limits.brought} bytes that it may bring")
    if record.external + len(batch.external) > program.limits.external:
        raise BatchRefused("too_much", f"more than the {program.limits.external} external URLs that it may bring")
    if len(batch.depths) != (0 if program.limits.depth is None else len(batch.external)):
        raise BatchRefused("forged", "depths of external URLs do not fit these")
    if batch.summary is None and not (batch.pages or batch.rows or batch.redirects or batch.external):
        raise BatchRefused("forged", "an empty batch: they could go on without end")
    rows: tuple[IrrelevantRow | RedirectRow, ...] = (*batch.rows, *batch.redirects)
    for row in rows:
        _check_url(row.url, record)
        _check_row(row, program)
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


def _check_row(row: IrrelevantRow | RedirectRow, program: MobileProgram) -> None:
    if isinstance(row, RedirectRow):
        is_asked_for = program.bring.errors and program.version > 1
        _check_depth(row, program)
        if row.target and not _is_canonical(row.target):
            raise BatchRefused("forged", f"{row.url[:200]}: a redirect to {row.target[:200]!r}")
    else:
        is_asked_for = program.bring.errors if _error_of(row) else program.bring.irrelevant == "rows"
    if not is_asked_for:
        raise BatchRefused("forged", f"{row.url[:200]}: a row that was not asked for")


def _check_depth(met: BroughtPage | RedirectRow, program: MobileProgram) -> None:
    if program.limits.depth is not None and met.depth > program.limits.depth:
        raise BatchRefused("forged", f"{met.url[:200]}: {met.depth} links from a seed are too many")


def _check_page(page: BroughtPage, crawler: MobileCrawler, record: CrawlerRecord) -> None:
    program = crawler.program
    for url in filter(None, (page.source, page.duplicate_of)):
        _check_url(url, record)
    if _RELATION.fullmatch(page.relation) is None or page.relation.partition(" ")[0] in _RESERVED:
        raise BatchRefused("forged", f"{page.url[:200]}: a relation of {page.relation[:40]!r}")
    if not 200 <= page.status < 300:
        raise BatchRefused("forged", f"{page.url[:200]}: status {page.status} brings no document")
    _check_depth(page, program)
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
    """The visits of a checked batch: of relevant documents, and of irrelevant ones, errors and redirects where rows were asked
    for. They have the time at which it came: when a document was read, only the runtime could say."""
    origin = partial(MobileOrigin, record.id, record.runtime, batch.program, batch.sequence)
    is_whole = "whole" in crawler.program.bring.parts
    firsts: dict[str, BroughtPage] = {}
    for page in batch.pages:
        first = firsts.setdefault(page.digest, page) if page.duplicate_of else page
        firsts.setdefault(page.digest, page)
        task = _task_of(Task(page.url, host_of(page.url), page.depth, page.source, page.relation), known)
        of_part: BroughtForm = "elements" if page.text is None and page.elements else "text"
        brought = origin("whole" if is_whole else of_part, page.digest, page.size)
        yield _visit(page, first, task, brought, known, now)
    for row in batch.rows:
        host = host_of(row.url)
        task = known.task(row.url, host) or Task(row.url, host, relation="crawler")  # a row says no more
        brought = origin("row", "", row.size)
        error = _error_of(row)
        outcome, why = (error, "") if error else (Outcome.IRRELEVANT, row.rule)
        response = Response(outcome, row.status, started=now, error=why, brought=brought)
        yield Visit(task, response, mime=row.mime if _MIME.fullmatch(row.mime) else "")
    for redirect in batch.redirects:
        brought = origin("row")
        to = (("location", redirect.target),) if redirect.target else ()
        response = Response(Outcome.REDIRECT, redirect.status, headers=to, started=now, brought=brought)
        yield Visit(_task_of(Task(redirect.url, host_of(redirect.url), redirect.depth), known), response)


def _task_of(claimed: Task, known: KnownAtHome) -> Task:
    """The task as home knows it, where it does: the page that led to it is no claim then."""
    task = known.task(claimed.url, claimed.host)
    return claimed if task is None else msgspec.structs.replace(task, depth=min(task.depth, claimed.depth))


def _visit(
    page: BroughtPage, first: BroughtPage, task: Task, brought: MobileOrigin, known: KnownAtHome, now: float
) -> Visit:
    text = "\n".join(one.markup for one in first.elements) if brought.form == "elements" else first.text or ""
    body = first.whole or b"" if brought.form == "whole" else text.encode("utf-8", "replace")
    fields = tuple((name.lower(), value) for name, value in page.headers if name.lower() not in _OF_THE_WIRE)
    if not any(name == "content-type" for name, _ in fields):
        fields = (*fields, ("content-type", page.mime if _MIME.fullmatch(page.mime) else "application/octet-stream"))
    response = Response(
        Outcome.TRUNCATED if page.truncated else Outcome.OK,
        page.status,
        headers=fields,
        body=body,
        started=now,
        cut="length" if page.truncated else "",
        brought=brought,
    )
    visit = Visit(task, response, items=tuple(_items(first, page.url)), trouble=page.trouble)
    if not brought.is_part:
        if body or not page.duplicate_of:
            return visit
        owner = known.owner(page.digest, page.url)
        if owner and owner != page.url:
            return msgspec.structs.replace(visit, digest=page.digest, duplicate_of=owner)
        return msgspec.structs.replace(visit, trouble=f"its bytes are those of {page.duplicate_of}, which is not here")
    links = [(one.url, one.relation, one.anchor, one.nofollow) for one in page.links]
    return msgspec.structs.replace(
        visit,
        mime=page.mime if _MIME.fullmatch(page.mime) else "",
        base=page.url,
        title=page.title,
        charset=page.charset,
        language=page.language,
        simhash=page.simhash,
        duplicate_of=page.duplicate_of,
        found=tuple(Found(*one) for one in links) if page.is_expanded else (),
        refused=() if page.is_expanded else tuple(Link(*one) for one in links if _is_canonical(one[0])),
    )


def _items(page: BroughtPage, url: str) -> Iterator[Item]:
    """Elements and items of a page, or of the first one with the same bytes."""
    for element in page.elements:
        value: Mapping[str, str] = {"selector": element.selector, "text": element.text, "markup": element.markup}
        yield Item(ELEMENT, url, value)
    for item in page.items:
        try:
            yield Item(item.kind, url, msgspec.json.decode(item.value))
        except (ValueError, RecursionError):
            raise BatchRefused("forged", f"{page.url[:200]}: an item that is no JSON") from None


def _error_of(row: IrrelevantRow) -> Outcome | None:
    """The error that a row tells of; None where it is one of a document."""
    name = row.rule.removeprefix(ERROR_ROW) if row.rule.startswith(ERROR_ROW) else ""
    return next((outcome for outcome in TOLD_ERRORS if outcome == name), None)
