"""Requests of pages that are being rendered: each is a task of the crawl, and the page gets its answer once that is committed.

Place in the flow: the stage `render` asks here (:meth:`Wants.known`) and sends the tasks to the frontier, which hands them out
before the other tasks of their hosts; the commit keeps their answers like all others, and this keeper passes on those of a group
that is kept. So the archive has everything that a browser has seen, and a kill between costs nothing but the rendering.

Promises:
    1. An answer that the crawl has for one page serves the others: small ones are kept in memory, up to a bound, and the rest is
       read from the archive. An answer to a page that proves who asks serves nothing but the same proof.
    2. Two pages that want the same at the same time cause one request.
    3. A request that no page waits for any more is not sent.
    4. What rendering has shown of a host is kept with the pages that showed it: the next run decides as this one would have.
    5. A request that fails for a moment is sent again while its page waits, and its host is asked no sooner for that.
"""

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Protocol

import msgspec

from gossamer.browser.needs import MOST_HOSTS, Needs
from gossamer.browser.options import Post
from gossamer.browser.rendering import Want, WantedAnswer, WantRefused
from gossamer.documents.content_coding import undone
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.contract import TaskGate
from gossamer.storage.archive.contract import GroupKeeper
from gossamer.storage.archive.reading import ArchivedRecord, read_record
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.request_identity import identity_of, requested
from gossamer.values.task import RELATIONS, WANT, Task
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import Link, Location, Record, Visit

#: Bytes of answers that are kept in memory: the scripts of some ten applications.
KEPT = 64 << 20

#: Seconds before the second and the third try of a request that failed for a moment; its page stands still, and holds a place.
PAUSES = (1.0, 5.0)

#: Outcomes that are such a moment. Where no connection reaches a host, as those of many counters of visitors, no page waits.
_OF_A_MOMENT = frozenset((Outcome.SERVER_ERROR, Outcome.RATE_LIMITED, Outcome.TIMED_OUT, Outcome.PROTOCOL_FAILED))

#: Seconds in which a request that failed at every try has one for each page, and of how many this is known.
VAIN_FOR, _MOST_VAIN = 600.0, 10_000

#: Tells the requests of pages from the crawl's own of the same URL: an answer to the one is no page of the crawl.
_KEY = "rendered"

#: The name of the lessons about hosts in the ledger; and the rule by which parts of pages are refused.
LESSONS, ARCHIVED = "render", "a rendered page had it fetched"

#: The mark of a want that neither sends a body nor proves who asks.
PLAIN_MARK = requested(key=_KEY).mark

#: Fields of the browser that go with a request; all others are the crawl's own, or say what the browser is.
_PASSED = frozenset(("accept", "content-type", "cookie", "origin", "x-requested-with", "authorization"))

#: Those that prove who asks, and kinds of wants whose answer may depend on that; another proof makes another request of it.
_PROVING, _ASKING_AS_SOMEONE = frozenset(("cookie", "authorization")), frozenset(("xhr", "fetch", "document"))


class PageAnswers(Protocol):
    """Answers what pages want while they are rendered: :class:`Wants` has it fetched,
    :class:`gossamer.browser.again.KeptAnswers` takes it out of an archive."""

    needs: Needs

    def recall(self, host: str) -> None:
        """Bring back what an earlier run has learnt of a host."""

    def bound(self, page: Visit) -> float:
        """The time that bounds the answers for a page, in seconds since the epoch."""

    async def answer(self, want: Want, page: Task, bound: float, send: Callable[[Task], None]) -> WantedAnswer:
        """The answer to a want of a page; `send` has the crawl fetch a task. Raises WantRefused."""

    def give_up(self) -> None:
        """Nothing more will come."""


def want_task(want: Want, page: Task, *, posts: bool) -> Task:
    """The task of a want of a page; `posts` lets it `POST` to its own host. Raises WantRefused: it is not to be sent."""
    try:
        url = canonical(want.url)
    except UnreadableUrl:
        raise WantRefused("unreadable") from None
    host = host_of(url)
    if want.method not in ("GET", "HEAD") and not (posts and want.method == "POST" and host == page.host):
        raise WantRefused(f"method:{want.method.lower()}"[:40])
    names = _PASSED if want.kind in _ASKING_AS_SOMEONE else _PASSED - _PROVING
    fields = tuple((name, value) for name, value in want.headers if name in names and value)
    session = "" if page.request is None else page.request.session
    proof = "\n".join((session, *(value for name, value in fields if name in _PROVING)))
    key = f"{_KEY} {blake2b(proof.encode(), digest_size=8).hexdigest()}" if proof else _KEY
    try:
        request = requested(want.method, want.body, fields, key=key, redirects="keep", session=session)
    except UsageError:
        raise WantRefused("unsendable") from None
    return Task(url, host, page.depth, page.url, f"{WANT}{want.kind}", request=request)


Told = tuple[Outcome, WantedAnswer | None]
"""The outcome of a want, and its answer where there is one."""


class WantsSheet(Sheet, frozen=True):
    directory: Annotated[
        str,
        setting(
            "Look for answers of earlier runs in this crawl directory; if empty, none is looked for.",
            restart="it is the crawl's directory",
            names="a folder",
        ),
    ] = ""
    post: Post = False


class Wants(Provider[WantsSheet], GroupKeeper):
    """Answers wants out of what the crawl has, or has it fetched. Contracts: `PageAnswers`, `Keeper`, `TaskFilter`, `UrlFilter`."""

    ledger: Uses[Ledger]

    def __init__(self, sheet: WantsSheet | None = None) -> None:
        super().__init__(sheet)
        self._asked: dict[str, asyncio.Future[Told]] = {}
        self._vain: dict[str, float] = {}
        """When requests failed at every try, by the identities of their tasks."""
        self._waiting = Counter[str]()
        """How many pages wait for an answer, by the identity of its task."""
        self._kept: OrderedDict[str, tuple[float, WantedAnswer]] = OrderedDict()
        """Answers, each with the time at which it was fetched, in seconds since the epoch."""
        self._size = 0
        self._staged: list[Visit] = []
        self.needs = Needs()
        self._noted: dict[str, bytes] = {}
        """By host, digests of what the ledger keeps of it."""
        self._staged_notes: dict[str, bytes] = {}
        self.metrics.gauge("under_way", lambda: len(self._asked))
        self.metrics.gauge("kept_bytes", lambda: self._size)

    # -- for the stage that renders

    def recall(self, host: str) -> None:
        """Bring back what an earlier run has learnt of a host, where nothing is known of it here."""
        if not self.needs.knows(host):
            [note] = self.ledger.learnt((host,), LESSONS)
            if note is not None:
                self.needs.recall(host, note)

    async def answer(self, want: Want, page: Task, oldest: float, send: Callable[[Task], None]) -> WantedAnswer:
        """The answer to a want: what the crawl has, or what it fetches now. Raises WantRefused."""
        task = want_task(want, page, posts=self.sheet.post)
        given = await self.known(task, oldest)
        if given is not None:
            return given
        identity, now = task.identity, self.clock.monotonic
        is_vain = now() < self._vain.get(identity, -VAIN_FOR) + VAIN_FOR or not task.is_safe
        outcome, given = await self._fetched(task, send)
        for pause in () if is_vain else PAUSES:
            if outcome not in _OF_A_MOMENT:
                break
            self.metrics.count("again")
            await self.clock.sleep(pause)
            task = msgspec.structs.replace(task, attempt=task.attempt + 1)
            outcome, last = await self._fetched(task, send)
            given = last or given  # of a host that takes no more requests by now, the page has what it said before
        if outcome in _OF_A_MOMENT and not is_vain:
            if len(self._vain) >= _MOST_VAIN:
                self._vain.clear()
            self._vain[identity] = now()
        if given is None:
            raise WantRefused(outcome.value)
        return given

    async def _fetched(self, task: Task, send: Callable[[Task], None]) -> Told:
        """The answer to a task, which is sent unless it is under way. Raises WantRefused: the crawl ends."""
        future, is_new = self.expect(task)
        if is_new:
            send(task)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if future.cancelled():
                raise WantRefused("ended") from None
            raise
        finally:
            self.leave(task)

    def bound(self, page: Visit) -> float:
        """When an answer must have been fetched, at the earliest, to be good for a page: one that is visited again gets news,
        answers that are younger than half of the time since its last visit."""
        row = self.ledger.document(page.task.identity)
        return 0.0 if row is None or row.outcome is not Outcome.OK else (row.fetched_at + page.response.started) / 2

    async def known(self, task: Task, oldest: float = 0.0) -> WantedAnswer | None:
        """The answer to a want, if the crawl has it, and it is not too old; None where it has to be asked for."""
        identity = task.identity
        fetched, given = self._kept.get(identity, (0.0, None))
        if given is not None and fetched >= oldest:
            self._kept.move_to_end(identity)
            self.metrics.count("known")
            return given
        if not self.sheet.directory:
            return None
        # The crawl's own document of the URL does as well, for a request that neither sends a body nor proves who asks.
        is_plain = task.request is not None and task.request.method == "GET" and task.request.mark.endswith(_KEY)
        for one in (identity, task.url) if is_plain else (identity,):
            row = self.ledger.document(one)
            if row is None or row.location is None or row.fetched_at < oldest:
                continue
            if row.outcome in (Outcome.OK, Outcome.CLIENT_ERROR):
                given = await asyncio.to_thread(_read, Path(self.sheet.directory), row.location)
                if given is not None:
                    self.metrics.count("read")
                    self._keep(identity, row.fetched_at, given)
                    return given
        return None

    def expect(self, task: Task) -> tuple["asyncio.Future[Told]", bool]:
        """The coming answer to a task, and whether it has to be sent: another page may wait for the same. A page that
        waits no more says so by :meth:`leave`."""
        self._waiting[task.identity] += 1
        future = self._asked.get(task.identity)
        if future is not None:
            return future, False
        future = self._asked[task.identity] = asyncio.get_running_loop().create_future()
        return future, True

    def leave(self, task: Task) -> None:
        """A page waits for this no more."""
        self._waiting[task.identity] -= 1
        if not self._waiting[task.identity]:
            del self._waiting[task.identity]

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """Refuses what no page waits for by now: a page that has reached a limit may leave hundreds of requests behind."""
        return ["its page has ended" if one.is_want and one.identity not in self._waiting else "" for one in tasks]

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """Refuses parts of a page that the archive has already since a page that was rendered has asked for them."""
        return [
            ARCHIVED if one.request is None and one.relation in RELATIONS and self._has(one.url) else ""
            for one in links
        ]

    def _has(self, url: str) -> bool:
        row = self.ledger.document(identity_of(url, PLAIN_MARK))
        return row is not None and row.outcome is Outcome.OK and row.location is not None

    def give_up(self) -> None:
        for future in self._asked.values():
            future.cancel()
        self._asked.clear()

    # -- for the commit

    def stage(self, records: Sequence[Record], group: Group) -> None:
        """Note the answers of a group, and keep what its pages have shown of their hosts."""
        self._staged = [one.visit for one in records if one.visit.task.is_want]
        self._staged_notes = {}
        for host in {one.visit.task.host for one in records if self.needs.knows(one.visit.task.host)}:
            note = self.needs.note(host)
            digest = blake2b(note, digest_size=16).digest()
            if digest != self._noted.get(host):
                self._staged_notes[host] = digest
                group.learnt(host, LESSONS, note)

    def committed(self, ends: Mapping[str, int]) -> None:
        """Give the answers of the group that is kept to those who wait."""
        for visit in self._staged:
            identity, response = visit.task.identity, visit.response
            future = self._asked.pop(identity, None)
            given = None  # for the browser: the body without its coding
            if response.outcome in ANSWERED:
                given = WantedAnswer(response.status or 200, response.headers, response.content)
            if given is not None and response.outcome in (Outcome.OK, Outcome.CLIENT_ERROR, Outcome.REDIRECT):
                self._keep(identity, response.started, given)
            if future is not None and not future.done():
                future.set_result((response.outcome, given))
        self._staged = []
        self._noted.update(self._staged_notes)
        if len(self._noted) > 2 * MOST_HOSTS:
            self._noted.clear()

    def take_back(self) -> None:
        """The group is given again."""
        self._staged = []

    def _keep(self, identity: str, fetched: float, given: WantedAnswer) -> None:
        if (old := self._kept.pop(identity, None)) is not None:
            self._size -= len(old[1].body)
        if len(given.body) > KEPT // 4:
            return
        self._kept[identity] = fetched, given
        self._size += len(given.body)
        while self._size > KEPT:
            self._size -= len(self._kept.popitem(last=False)[1][1].body)


def _read(directory: Path, location: Location) -> WantedAnswer | None:
    """An answer as the archive has it; None where it cannot be read."""
    with contextlib.suppress(CrawlDirectoryError, OSError):
        record = read_record(directory, location)
        return None if record.kind == "revisit" else archived_answer(record, record)
    return None


def archived_answer(record: ArchivedRecord, source: ArchivedRecord) -> WantedAnswer:
    """An answer out of the record of a fetch, and of the one with its body."""
    found = undone(record.headers, source.body)
    body = found.data if found.is_readable else source.body
    return WantedAnswer(record.status or 200, record.headers, body if isinstance(body, bytes) else b"")
