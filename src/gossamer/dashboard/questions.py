"""Questions from the browser, each answered in a process that is killed when it takes too long: SQL, SPARQL, words, pages, replays.

Place in the flow: :mod:`of_crawl` asks here. Saved questions lie in `$XDG_CONFIG_HOME/gossamer/reports.json`: they are the
user's, and hold for all crawls. A replay shows a page as it looked, from the archive alone: `GET /api/crawls/KEY/replay` leads
its reader to a signed address below :data:`~gossamer.analysis.replaying.REPLAY`, which :mod:`guarding` lets in by its signature. A
policy forbids a replayed page everything but its own pictures and styles, and its sandbox has no script, form, window or origin.

Pages that subjects add are made here too (:func:`make_page`). Functions of packages run in the worker alone, so an endless loop, a
crash or a page of a billion rows costs its browser an error, and nothing else notices.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from gossamer.analysis.replaying import (
    LASTS,
    NeedsParsing,
    ReplayAddresses,
    ReplayAsked,
    Replayed,
    ReplayQuestion,
    replayed,
)
from gossamer.dashboard.contract import DashboardPage, PageFunction
from gossamer.dashboard.crawls import Crawls, ShownCrawl
from gossamer.dashboard.routes import number_in
from gossamer.dashboard.sites import read_form, read_kept, write_kept
from gossamer.engine.errors import FlowError
from gossamer.engine.files import user_folder
from gossamer.engine.subjects import found_at, subjects
from gossamer.engine.worker import Caller, Use
from gossamer.engine.workers import WorkerFailed, answered
from gossamer.query.contract import Answerable, SearchQuestion, TripleQuestion, check_index, check_triples
from gossamer.query.reports import CELL, REPORTS, TableAnswer, TableQuestion, table_answer
from gossamer.values.errors import GossamerError, UsageError

#: Steps by which a process that answers gives way to crawls, and answers of one kind that are made at once; others wait. They must
#: not take the machine from the crawl beside it.
NICENESS, AT_ONCE = 5, 2


class LimitedAnswers:
    """Answers of one kind, each made by a process that is killed when it takes too long.

    The dashboard's own process parses nothing that strangers wrote, and no question that a person typed.
    """

    def __init__(
        self, function: str, seconds: float, memory: int, *, advice: str = "ask for less", cpu: int | None = None
    ) -> None:
        """Start nothing yet. An answer may take so many seconds, `cpu` of them of the processor, and bytes; `advice` is for a
        person whose answer takes more."""
        self._use = Use(function, NICENESS, memory=memory, seconds=int(seconds) + 2 if cpu is None else cpu)
        self._seconds, self._advice = seconds, advice
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def to(self, question: msgspec.Struct) -> bytes:
        """The answer to a question. Raises UsageError: it could not be answered, or not in time."""
        async with self._turns:
            try:
                return await answered(self._use, question, self._seconds)
            except WorkerFailed as failed:
                told = {
                    "refused": str(failed),
                    "time": f"there was no answer within {self._seconds:g} seconds; {self._advice}",
                    "memory": f"the answer needs more time or memory than it may use; {self._advice}",
                }
                raise UsageError(told.get(failed.reason, f"there is no answer: {failed}")) from None


#: Seconds and bytes that an answer may take: from the tables or the triples, from an index, which answers within a second, or
#: something is wrong with it, and of a page that a subject adds.
SECONDS, MEMORY = 30.0, 2 << 30
SEARCH_SECONDS, SEARCH_MEMORY = 10.0, 1 << 30
PAGE_SECONDS, PAGE_MEMORY = 10.0, 1 << 30

#: Rows that are shown; characters of a question at most.
SHOWN_ROWS, LONGEST = 1_000, 10_000

#: Documents on a page of what was found, and how far a person can page.
HITS, MOST_HITS, FARTHEST = 20, 100, 10_000


class Questions:
    """The questions of all browsers. Each answer is JSON. Each method raises UsageError: it is no question, cannot be answered, or
    takes too long."""

    def __init__(self, seconds: float | None = None) -> None:
        """`seconds` is what each answer may take, instead of the usual."""
        most = seconds or SECONDS
        self._tables = LimitedAnswers("gossamer.query.reports:answer_tables", most, MEMORY)
        # The child ends by itself in time, so that it removes its copy of the store; the kill is for a child that does not.
        self._cpu = int(most)
        self._triples = LimitedAnswers("gossamer.rdf.store.asking:answer_triples", most + 5, MEMORY, cpu=self._cpu)
        self._words = LimitedAnswers("gossamer.search.indexing:answer_search", seconds or SEARCH_SECONDS, SEARCH_MEMORY)
        self._pages = LimitedAnswers(
            "gossamer.dashboard.questions:make_page",
            seconds or PAGE_SECONDS,
            PAGE_MEMORY,
            advice="its package has to do less",
        )

    async def tables(self, directory: Path, sql: str = "", report: str = "") -> msgspec.Raw:
        """The tables that answer a question in SQL, or a report."""
        if bool(sql.strip()) == bool(report) or len(sql) > LONGEST:
            raise UsageError(f"give either sql, of {LONGEST} characters at most, or report")
        return msgspec.Raw(await self._tables.to(TableQuestion(str(directory), SHOWN_ROWS, sql, report)))

    async def triples(self, directory: Path, query: str) -> msgspec.Raw:
        """The answer to a question in SPARQL (:class:`~gossamer.query.contract.TripleAnswer`)."""
        if not query.strip() or len(query) > LONGEST:
            raise UsageError(f"give query, of {LONGEST} characters at most")
        question = TripleQuestion(
            directory=str(directory), memory=MEMORY, seconds=self._cpu, rows=SHOWN_ROWS, query=query
        )
        return msgspec.Raw(await self._triples.to(question))

    async def words(self, directory: Path, asked: QueryParams) -> msgspec.Raw:
        """The best documents (:class:`~gossamer.search.asking.SearchAnswer`) for `words`, and any number of `host`, `language` and
        `type`, each of which is a filter; `start` says how many are left out, `limit` how many are told."""

        def several(name: str) -> tuple[str, ...]:
            return tuple(filter(None, asked.getlist(name)))

        question = SearchQuestion(
            directory=str(directory),
            words=asked.get("words", ""),
            hosts=several("host"),
            languages=several("language"),
            types=several("type"),
            start=int(number_in(asked, "start", 0, FARTHEST, least=0)),
            most=int(number_in(asked, "limit", HITS, MOST_HITS, least=1)),
        )
        return msgspec.Raw(await self._words.to(question))

    async def page(self, directory: Path, title: str) -> msgspec.Raw:
        if all(one.title != title for one in page_names()):
            raise UsageError("no subject has a page of this title")
        return msgspec.Raw(await self._pages.to(PageQuestion(str(directory), title)))


def answerable(directory: Path) -> Answerable:
    """The kinds of questions that a crawl can answer; looks at names of files, and at the wiring where no triples lie. Of a crawl
    whose wiring is damaged, that is the reason."""
    return Answerable(_why_not(check_triples, directory), _why_not(check_index, directory))


def _why_not(check: Callable[[Path], None], directory: Path) -> str:
    try:
        check(directory)
    except (GossamerError, FlowError) as error:
        return str(error)
    return ""


# Saved questions.

#: Saved questions at most.
SAVED = 200

#: The name of a column of an answer; SQL lets it be any text.
ColumnName = Annotated[str, msgspec.Meta(max_length=200)]


class SavedPlot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plot that a person chose for the answer to a question."""

    kind: Literal["line", "bars", "none"]
    x: ColumnName = ""
    """The column of times, numbers or names along which it is drawn; an answer that lacks it has no plot."""
    y: ColumnName = ""
    """The column of numbers that are drawn."""


class SavedQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    sql: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    plot: SavedPlot | None = None
    """None where the form of the answer decides."""


class KeptQuestions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    saved: Annotated[list[SavedQuestion], msgspec.Meta(max_length=SAVED)] = []


class ReportName(msgspec.Struct, frozen=True):
    name: str
    doc: str


class ReportNames(msgspec.Struct, frozen=True):
    """Questions that need no SQL to be written."""

    reports: list[ReportName]
    saved: list[SavedQuestion]
    trouble: str = ""
    """Why saved questions are not shown."""


def questions_file() -> Path:
    """The file of saved questions: `$XDG_CONFIG_HOME/gossamer/reports.json`."""
    return user_folder("config") / "reports.json"


def names_of_reports(path: Path) -> ReportNames:
    """The reports that ship, and what was saved; where that cannot be read, why."""
    saved, trouble = [], ""
    try:
        saved = read_kept(path, KeptQuestions).saved
    except UsageError as error:
        trouble = str(error)
    return ReportNames([ReportName(name, spec.doc) for name, spec in REPORTS.items()], saved, trouble)


def save_questions(path: Path, body: bytes) -> ReportNames:
    """Keep these questions in the place of those that were kept.
    Raises UsageError: they are none, those that were kept cannot be read, or these cannot be kept."""
    kept = read_form("saved", body, KeptQuestions)
    read_kept(path, KeptQuestions)  # what cannot be read may hold more than the browser knows
    write_kept(path, kept)
    return names_of_reports(path)


# Replays of archived documents.

#: Seconds and bytes that a page may take.
REPLAY_SECONDS, REPLAY_MEMORY = 10.0, 2 << 30

#: Documents that are read at once: a page of pictures must leave threads to browsers that watch a crawl.
READ_AT_ONCE = 2

#: Said with every answer. Requests of a page come from no origin, so pictures are open to every origin; but
#: only a reader who was given their addresses can ask for them.
SANDBOX = {
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-DNS-Prefetch-Control": "off",
}


class Replays:
    """All replays of one dashboard."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` tells seconds since 1970."""
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._addresses = ReplayAddresses(self._secret)
        self._turns = asyncio.Semaphore(READ_AT_ONCE)
        self._answers = LimitedAnswers(
            "gossamer.analysis.replaying:answer_replay",
            REPLAY_SECONDS,
            REPLAY_MEMORY,
            advice="look at the text of the page instead",
        )

    def is_given(self, query: bytes) -> bool:
        """Whether this is the query of an address that was given out and is still good."""
        return self._addresses.read(query, self._clock()) is not None

    async def enter(self, request: Request, shown: ShownCrawl) -> Response:
        """Lead who may read to the address of a document."""
        asked = request.query_params
        if not asked.get("url"):
            raise UsageError("say which URL: ?url=...")
        until = int(self._clock()) + LASTS
        address = self._addresses.of(ReplayAsked(shown.key, asked["url"], asked.get("at", ""), until))
        return RedirectResponse(address, HTTPStatus.SEE_OTHER)

    async def show(self, request: Request, crawls: Crawls) -> Response:
        """The document at an address, or in plain words the reason why there is none."""
        asked = self._addresses.read(request.scope["query_string"], self._clock())
        if asked is None:
            return PlainTextResponse("this address is no longer valid\n", HTTPStatus.FORBIDDEN, SANDBOX)
        is_picture = request.headers.get("sec-fetch-dest") == "image"
        try:
            shown = await crawls.named(asked.crawl)
            try:
                async with self._turns:
                    made = await shown.run(
                        lambda: replayed(
                            shown.directory, asked, self._addresses, may_parse=False, is_picture=is_picture
                        )
                    )
            except NeedsParsing:
                question = ReplayQuestion(str(shown.directory), asked, self._secret)
                made = msgspec.msgpack.decode(await self._answers.to(question), type=Replayed)
        except GossamerError as error:
            return PlainTextResponse(f"{error}\n", HTTPStatus.NOT_FOUND, SANDBOX)
        if made.target:
            return RedirectResponse(made.target, HTTPStatus.SEE_OTHER, SANDBOX)
        return Response(made.body, headers={**SANDBOX, "Content-Type": made.media_type})


#: Rows and columns of a table, and characters of a text that are shown.
ROWS, COLUMNS, TEXT = 1_000, 100, 200_000


class PageName(msgspec.Struct, frozen=True):
    title: str
    subject: str


class PageQuestion(msgspec.Struct, frozen=True):
    directory: str
    """Of the crawl."""
    title: str


class ShownPage(msgspec.Struct, frozen=True):
    """A page as browsers get it."""

    text: str
    is_cut: bool
    """The text goes on."""
    table: TableAnswer


def page_names() -> list[PageName]:
    """The pages of all subjects.
    Raises WiringError: a package offers something that is no subject, or a name that is taken."""
    return [PageName(title, one.name) for one in subjects() for title in one.pages]


def make_page(asked: PageQuestion, caller: Caller) -> bytes:
    """Call the function of a page; the answer is a :class:`ShownPage` as JSON.
    Raises GossamerError: the page cannot be found, or its function raised or returned something else than a page."""
    title = asked.title
    one = next(one for one in subjects() if title in one.pages)
    function: PageFunction = found_at(one.pages[title])
    try:
        page = msgspec.convert(function(Path(asked.directory)), DashboardPage)
        columns = [name[:CELL] for name in page.columns[:COLUMNS]]
        rows = (list(row)[:COLUMNS] for row in page.rows)
        table = table_answer(page.title[:CELL] or title, columns, [], rows, ROWS)
        return msgspec.json.encode(ShownPage(page.text[:TEXT], len(page.text) > TEXT, table))
    except (GossamerError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # code of others: anything can come out of it
        raise UsageError(f"page {title!r} of subject {one.name!r} failed: {type(error).__name__}: {error}") from error
