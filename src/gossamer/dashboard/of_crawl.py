"""Answers about one crawl: everything at the addresses below `/api/crawls/KEY`.

Place in the flow: :mod:`app` has the other addresses. Work that waits is done in threads (:mod:`crawls`); answers to questions,
pages that subjects add, and exports are made by processes of their own (:mod:`questions`, :mod:`exporting`).

Orders are control messages by the words of the commands (:mod:`gossamer.crawls.control.messages`), a closed list. A form
changes the graph by names of the catalog: it becomes the text of a change file as `gossamer rewire` takes it, and the crawl
says what it would change, and changes it. Nothing in either names code, files or URLs to load.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tomli_w
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from gossamer.analysis.traces import Story
from gossamer.analysis.watching import HostPicture, picture_of
from gossamer.analysis.why import story_of
from gossamer.cli.steering import carry_out
from gossamer.crawls.catalog import catalog
from gossamer.crawls.control import messages
from gossamer.crawls.control.client import Control, NotRunning
from gossamer.crawls.control.facts import HostNow
from gossamer.crawls.control.picture import GraphPicture, UnitInstances, graph_picture
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.wire import ControlRequest
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.old_wirings import completed
from gossamer.crawls.trap_review import Suspicions, suspicions_of
from gossamer.dashboard.crawls import Crawls, ListedHosts, ShownCrawl, Streams
from gossamer.dashboard.exporting import Exporter, Exports, ExportWish, NamedExport
from gossamer.dashboard.jobs import JobDone, LogTail, Restore, log_tail, restore, resume
from gossamer.dashboard.questions import Questions, Replays, ShownPage, answerable
from gossamer.dashboard.routes import Addresses, CrawlAnswer, number_in
from gossamer.dashboard.sites import LAYOUTS, Layout, read_form, read_layout, write_layout
from gossamer.engine.files import user_folder
from gossamer.engine.planning import plan
from gossamer.engine.subjects import offered
from gossamer.engine.transports import GROUP
from gossamer.query.archive import ArchivedView, view_archived
from gossamer.query.contract import Answerable, TripleAnswer
from gossamer.query.host_list import MOST
from gossamer.query.reports import TableAnswer
from gossamer.storage.members import members_of
from gossamer.storage.tables.row_tables import SAMPLES, SampleRow
from gossamer.values.agents import at_work
from gossamer.values.errors import GossamerError, UsageError

#: Seconds for a change: what leaves finishes what it fetches first; and for an order: a checkpoint flushes the store's memory.
CHANGING, PATIENCE = 300.0, 60.0

#: Schemes of connectors that stay within a process. Others name files and machines, and are for a change file.
SCHEMES = ("local", "fused", "priority")

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]+$", max_length=100)]
Names = dict[str, str | list[str]]


class _Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part of an entry of a change file that a form has; settings that it leaves out stay as they are."""


class ConnectorForm(_Form, frozen=True):
    address: Annotated[str, msgspec.Meta(max_length=100)] | msgspec.UnsetType = msgspec.UNSET
    capacity: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET


class ProviderForm(_Form, frozen=True):
    use: Name | msgspec.UnsetType = msgspec.UNSET
    """A name of the catalog; with it, the entry is a whole plan."""
    providers: dict[str, str | Names] | msgspec.UnsetType = msgspec.UNSET
    settings: dict[Name, Any] | msgspec.UnsetType = msgspec.UNSET


class ComponentForm(ProviderForm, frozen=True):
    ports: dict[Name, Name] | msgspec.UnsetType = msgspec.UNSET
    workers: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | msgspec.UnsetType = msgspec.UNSET
    instances: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | msgspec.UnsetType = msgspec.UNSET
    on_error: Literal["stop", "restart", "skip"] | msgspec.UnsetType = msgspec.UNSET


class ChangeForm(_Form, frozen=True):
    remove: Annotated[list[Annotated[str, msgspec.Meta(max_length=120)]], msgspec.Meta(max_length=1_000)] = []
    components: dict[Name, ComponentForm] = {}
    connectors: dict[Name, ConnectorForm] = {}
    providers: dict[Name, ProviderForm] = {}


class Rewiring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change, as a browser sends it."""

    change: ChangeForm
    apply: bool = False
    """Do it; otherwise only say what it would change."""
    agent: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """The one of several agents that alone is changed, until it begins again; empty: the whole crawl."""


class Rewired(msgspec.Struct, frozen=True):
    text: str
    """The change file, as `gossamer rewire` takes it."""
    told: str
    """The changes, in words."""
    is_done: bool


class Offered(msgspec.Struct, frozen=True):
    components: list[str]
    providers: list[str]
    schemes: list[str]


def names_offered() -> Offered:
    """The names that ship, and those that installed packages offer."""
    known = catalog()
    return Offered(known.names("components"), known.names("providers"), _schemes())


def rewire(directory: Path, body: bytes) -> Rewired:
    """Do what a form says, or say what it would change. Raises UsageError: it is no such form, or names what a form may not.
    Raises GossamerError: no crawl runs, or it refuses the change; nothing has changed."""
    form = read_form("change", body, Rewiring)
    text = text_of(form.change)
    kind = messages.Rewire if form.apply else messages.CheckRewire
    request: ControlRequest = kind(text, "the form", form.agent, by_form=True)
    with Control(directory, CHANGING, changing=0.0) as control:
        return Rewired(text, control.do(request), form.apply)


def text_of(change: ChangeForm) -> str:
    """The change file of a form. Raises UsageError: it names what a form may not, or says nothing, or too much."""
    known = _schemes()
    for name, one in change.connectors.items():
        scheme = one.address.partition(":")[0] if one.address is not msgspec.UNSET else "local"
        if scheme not in known:
            raise UsageError(
                f"connectors.{name}: a form takes addresses of {', '.join(known)}; write a change file for {scheme!r}"
            )
    text = tomli_w.dumps(msgspec.to_builtins(change))
    if not text.strip() or len(text) > messages.MAX_CHANGE:
        raise UsageError(
            "the change is empty" if not text.strip() else f"a change has at most {messages.MAX_CHANGE} characters"
        )
    return text


def _schemes() -> list[str]:
    return [*SCHEMES, *sorted({entry.name for entry in offered(GROUP)})]


#: Word in an address -> the message that is sent.
ORDERS: dict[str, type[ControlRequest]] = {
    "pause": messages.Pause,
    "continue": messages.Continue,
    "suspend": messages.Suspend,
    "unsuspend": messages.Unsuspend,
    "stop": messages.Stop,
    "checkpoint": messages.Checkpoint,
    "set": messages.Change,
    "check-set": messages.CheckChange,
    "set-host": messages.SetHost,
    "block": messages.BlockHosts,
    "decide": messages.Decide,
    "undo": messages.Undo,
}


def read_order(word: str, body: bytes) -> ControlRequest:
    """The message of an order; `body` is the JSON of its fields.
    Raises UsageError: there is no such order, or the body is none of its."""
    kind = ORDERS.get(word)
    if kind is None:
        raise UsageError(f"there is no such order; known: {', '.join(ORDERS)}")
    try:
        given = msgspec.json.decode(body or b"{}", type=dict[str, object])
        # The word in the address says which message it is, and nothing in the body does; nor who asks.
        fixed = {"do": kind.__struct_config__.tag, **({"by_form": True} if "by_form" in kind.__struct_fields__ else {})}
        return msgspec.convert({**given, **fixed}, kind)
    except ValueError as error:
        raise UsageError(f"{word}: {error}") from None


def graph_of(directory: Path, agent: str = "") -> GraphPicture:
    """The graph of a crawl, or of one of several agents: by its own word while it runs, otherwise as its directory keeps it.
    Raises GossamerError: there is no crawl, or its wiring is damaged. Raises FlowError: a unit of it cannot be found, as one of
    a program of the user's own."""
    try:
        with Control(directory, PATIENCE, changing=0.0) as control:
            return control.told(messages.ReadGraph(agent), GraphPicture)
    except NotRunning:
        return graph_picture(plan(completed(read_wiring(directory)), catalog()), at_work(members_of(directory)))


def instances_of(directory: Path, name: str) -> UnitInstances:
    """The instances of a unit of a running crawl, of all its agents.
    Raises GossamerError: there is no such unit, or no crawl runs."""
    with Control(directory, PATIENCE, changing=0.0) as control:
        return control.told(messages.ReadUnit(name), UnitInstances)


# Answers at the addresses of one crawl.

#: Points of a plot at most: more than a screen has columns for.
POINTS = 1_000

#: Hours of samples that are sent unless asked otherwise, and at most.
HOURS, MOST_HOURS = 1.0, 24.0 * 365


def told_by(work: Callable[..., Any], *asked: str, needs: str = "") -> CrawlAnswer:
    """Answers with what `work` says of the directory of the crawl, and of these words of the query; `needs` is what the first one
    names, where it must not be empty."""

    async def answer(request: Request, shown: ShownCrawl) -> object:
        words = [request.query_params.get(name, "") for name in asked]
        if needs and not words[0]:
            raise UsageError(f"say which {needs}: ?{asked[0]}=...")
        if inspect.iscoroutinefunction(work):
            return await work(shown.directory, *words)
        return await shown.run(work, shown.directory, *words)

    return answer


def done_by(work: Callable[[Path, bytes], Any]) -> CrawlAnswer:
    """Has `work` do what the body says to the directory of the crawl."""

    async def answer(request: Request, shown: ShownCrawl) -> object:
        return await shown.run(work, shown.directory, await request.body())

    return answer


async def _standing(request: Request, shown: ShownCrawl) -> CrawlStanding:
    asked = request.query_params
    return await shown.standing(units=asked.get("units") == "1", agent=asked.get("agent", ""))


async def _samples(request: Request, shown: ShownCrawl) -> dict[str, list[object]]:
    """The samples by column: a plot wants them so, and the names are sent once."""
    hours = number_in(request.query_params, "hours", HOURS, MOST_HOURS)
    since = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    rows = await shown.samples(since)
    step = max(1, -(-len(rows) // POINTS))
    rows = rows[::-step][::-1]  # the last row stays
    return {name: [getattr(row, name) for row in rows] for name in SampleRow.__struct_fields__}


async def _hosts(crawls: Crawls, request: Request, shown: ShownCrawl) -> ListedHosts:
    asked = request.query_params
    listed, is_being_made = await crawls.hosts_of(shown)
    page = await shown.run(
        lambda: listed.page(
            search=asked.get("search", "")[:253],
            sort=asked.get("sort", "host"),
            descending=asked.get("descending") == "1",
            offset=int(number_in(asked, "offset", 0, 1e9, least=0)),
            limit=int(number_in(asked, "limit", 100, MOST)),
        )
    )
    now: dict[str, HostNow] = {}
    if asked.get("live") == "1" and page.rows:
        # A crawl that does not answer is told of elsewhere; the list is worth showing without it.
        with contextlib.suppress(GossamerError):
            now = await shown.hosts_now([row["host"] for row in page.rows])
    return ListedHosts(page.made_at, page.total, page.rows, page.left_out, is_being_made, now)


async def _keep_layout(request: Request, shown: ShownCrawl) -> object:
    return await shown.run(write_layout, user_folder("state") / LAYOUTS, shown.key, await request.body())


async def _do_order(request: Request, shown: ShownCrawl) -> JobDone:
    order = read_order(request.path_params["order"], await request.body())
    return JobDone(await shown.run(lambda: carry_out(shown.directory, order, PATIENCE, changing=0.0)))


def add_of_crawl(at: Addresses, questions: Questions, exporter: Exporter, streams: Streams, replays: Replays) -> None:
    """Add the addresses below that of each crawl."""

    async def events(request: Request, shown: ShownCrawl) -> Response:
        if streams.is_full:
            raise HTTPException(503, "too many browsers watch already")
        return StreamingResponse(streams.of(shown), media_type="text/event-stream")

    async def download(request: Request, shown: ShownCrawl) -> Response:
        path = await shown.run(exporter.file, shown.directory, request.path_params["name"])
        # Never shown by a browser, whatever a web site wrote into it.
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    one = at.of_one
    one("", _standing, CrawlStanding)
    one(
        "/samples",
        _samples,
        {"type": "object", "properties": {one.name: {"type": "array"} for one in SAMPLES.spec.columns}},
    )
    one("/hosts", functools.partial(_hosts, at.crawls), ListedHosts)
    one("/host", told_by(picture_of, "name", needs="host"), HostPicture)
    one("/graph", told_by(graph_of, "agent"), GraphPicture)
    one("/unit", told_by(instances_of, "name", needs="unit"), UnitInstances)
    one("/traps", told_by(suspicions_of), Suspicions)
    one("/layout", lambda _, shown: shown.run(read_layout, user_folder("state") / LAYOUTS, shown.key), Layout)
    one("/layout", _keep_layout, Layout, takes=Layout)
    one("/story", told_by(story_of, "url", needs="URL"), Story)
    one("/document", told_by(view_archived, "url", "at", needs="URL"), ArchivedView)
    one("/replay", replays.enter, answers={"303": {"description": "the address"}})
    one("/tables", told_by(questions.tables, "sql", "report"), list[TableAnswer])
    one("/answerable", told_by(answerable), Answerable)
    one("/sparql", told_by(questions.triples, "query"), TripleAnswer)
    one("/search", lambda request, shown: questions.words(shown.directory, request.query_params))
    one(
        "/pages/{name:path}",
        lambda request, shown: questions.page(shown.directory, request.path_params["name"]),
        ShownPage,
    )
    one("/rewire", done_by(rewire), Rewired, takes=Rewiring)
    one("/log", told_by(log_tail), LogTail)
    one("/resume", told_by(resume), JobDone, takes=dict)
    one("/restore", done_by(restore), JobDone, takes=Restore)
    one("/exports", told_by(exporter.listed), Exports)
    one("/exports", done_by(exporter.begin), Exports, takes=ExportWish)
    one("/remove-export", done_by(exporter.remove), Exports, takes=NamedExport)
    one(
        "/exports/{name}",
        download,
        answers={"200": {"description": "the file", "content": {"application/octet-stream": {}}}},
    )
    one("/events", events, answers={"200": {"description": "events", "content": {"text/event-stream": {}}}})
    one("/{order}", _do_order, takes=dict)
    for word, kind in ORDERS.items():
        at.describe(f"/api/crawls/{{key}}/{word}", (kind.__doc__ or word).partition("\n")[0], JobDone, kind)
