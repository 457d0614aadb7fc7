"""Answers about one crawl: everything at the addresses below `/api/crawls/KEY`.

Place in the flow: :mod:`app` has the list of addresses. Work that waits is done in threads (:mod:`crawls`); answers to questions,
pages that subjects add, and exports are made by processes of their own (:mod:`questions`, :mod:`exporting`).

Orders from the browser are control messages by the words of the commands (:mod:`gossamer.crawls.control.messages`), a closed
list, and a form changes the graph by names of the catalog: it becomes the text of a change file as `gossamer rewire` takes it,
and the crawl says what it would change, and changes it. Nothing in either names code, files or URLs to load.
"""

import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tomli_w
from starlette.requests import Request

from gossamer.crawls.catalog import catalog
from gossamer.crawls.control.client import Control, NotRunning
from gossamer.crawls.control.host_facts import HostNow
from gossamer.crawls.control.instances import UnitInstances
from gossamer.crawls.control.messages import (
    MAX_CHANGE,
    BlockHosts,
    Change,
    CheckChange,
    Checkpoint,
    CheckRewire,
    Continue,
    Decide,
    Pause,
    ReadGraph,
    ReadUnit,
    Rewire,
    SetHost,
    Stop,
    Suspend,
    Undo,
    Unsuspend,
)
from gossamer.crawls.control.picture import GraphPicture, graph_picture
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.wire import ControlRequest
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.old_wirings import completed
from gossamer.dashboard.crawls import Crawls, ListedHosts, ShownCrawl
from gossamer.dashboard.questions import (
    FARTHEST,
    HITS,
    MOST_HITS,
    AddedPages,
    SearchConsole,
    TableConsole,
    TripleConsole,
)
from gossamer.dashboard.sites import Layout, layouts_folder, read_form, read_layout, write_layout
from gossamer.engine.subjects import offered
from gossamer.engine.transports import GROUP
from gossamer.query.host_list import MOST
from gossamer.storage.recovery import members_of
from gossamer.storage.tables.row_tables import SampleRow
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
    """A connector."""

    address: Annotated[str, msgspec.Meta(max_length=100)] | msgspec.UnsetType = msgspec.UNSET
    capacity: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET


class ProviderForm(_Form, frozen=True):
    """A provider."""

    use: Name | msgspec.UnsetType = msgspec.UNSET
    """A name of the catalog; with it, the entry is a whole plan."""
    providers: dict[str, str | Names] | msgspec.UnsetType = msgspec.UNSET
    settings: dict[Name, Any] | msgspec.UnsetType = msgspec.UNSET


class ComponentForm(ProviderForm, frozen=True):
    """A component, in the process that it has."""

    ports: dict[Name, Name] | msgspec.UnsetType = msgspec.UNSET
    workers: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | msgspec.UnsetType = msgspec.UNSET
    instances: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | msgspec.UnsetType = msgspec.UNSET
    on_error: Literal["stop", "restart", "skip"] | msgspec.UnsetType = msgspec.UNSET


class ChangeForm(_Form, frozen=True):
    """A change of the graph."""

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
    """The result."""

    text: str
    """The change file, as `gossamer rewire` takes it."""
    told: str
    """The changes, in words."""
    is_done: bool


class Offered(msgspec.Struct, frozen=True):
    """Names that a form offers."""

    components: list[str]
    providers: list[str]
    schemes: list[str]


def names_offered() -> Offered:
    """The names that ship, and those that installed packages offer."""
    known = catalog()
    return Offered(known.names("components"), known.names("providers"), [*SCHEMES, *_own_schemes()])


def rewire(directory: Path, body: bytes) -> Rewired:
    """Do what a form says, or say what it would change. Raises UsageError: it is no such form, or names what a form may not.
    Raises GossamerError: no crawl runs, or it refuses the change; nothing has changed."""
    form = read_form("change", body, Rewiring)
    text = text_of(form.change)
    kind = Rewire if form.apply else CheckRewire
    request: ControlRequest = kind(text, "the form", form.agent, by_form=True)
    with Control(directory, CHANGING, changing=0.0) as control:
        return Rewired(text, control.do(request), form.apply)


def text_of(change: ChangeForm) -> str:
    """The change file of a form. Raises UsageError: it names what a form may not, or says nothing, or too much."""
    for name, one in change.connectors.items():
        scheme = one.address.partition(":")[0] if one.address is not msgspec.UNSET else "local"
        known = [*SCHEMES, *_own_schemes()]
        if scheme not in known:
            raise UsageError(
                f"connectors.{name}: a form takes addresses of {', '.join(known)}; write a change file for {scheme!r}"
            )
    text = tomli_w.dumps(msgspec.to_builtins(change))
    if not text.strip() or len(text) > MAX_CHANGE:
        raise UsageError("the change is empty" if not text.strip() else f"a change has at most {MAX_CHANGE} characters")
    return text


def _own_schemes() -> list[str]:
    return sorted({entry.name for entry in offered(GROUP)})


#: Points of a plot at most: more than a screen has columns for.
POINTS = 1_000

#: Hours of samples that are sent unless asked otherwise, and at most.
HOURS, MOST_HOURS = 1.0, 24.0 * 365


CrawlAnswer = Callable[[Request, ShownCrawl], Awaitable[Any]]


def told_by(work: Callable[..., Any], *asked: str) -> CrawlAnswer:
    """Answers with what `work` says of the directory of the crawl, and of these words of the query."""

    async def answer(request: Request, shown: ShownCrawl) -> object:
        return await shown.run(work, shown.directory, *(request.query_params.get(name, "") for name in asked))

    return answer


def done_by(work: Callable[[Path, bytes], Any]) -> CrawlAnswer:
    """Has `work` do what the body says to the directory of the crawl."""

    async def answer(request: Request, shown: ShownCrawl) -> object:
        return await shown.run(work, shown.directory, await request.body())

    return answer


async def tell_standing(request: Request, shown: ShownCrawl) -> CrawlStanding:
    asked = request.query_params
    return await shown.standing(units=asked.get("units") == "1", agent=asked.get("agent", ""))


async def tell_samples(request: Request, shown: ShownCrawl) -> dict[str, list[object]]:
    """The samples by column: a plot wants them so, and the names are sent once."""
    hours = number_in(request, "hours", HOURS, MOST_HOURS)
    since = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    rows = _thinned(await shown.samples(since))
    return {name: [getattr(row, name) for row in rows] for name in SampleRow.__struct_fields__}


def _thinned(rows: list[SampleRow]) -> list[SampleRow]:
    step = -(-len(rows) // POINTS)  # the last row stays
    return rows[::-step][::-1] if step > 1 else rows


async def tell_hosts(request: Request, crawls: Crawls) -> ListedHosts:
    shown, asked = await crawls.named(request.path_params["key"]), request.query_params
    listed, is_being_made = await crawls.hosts_of(shown)
    page = await shown.run(
        lambda: listed.page(
            search=asked.get("search", "")[:253],
            sort=asked.get("sort", "host"),
            descending=asked.get("descending") == "1",
            offset=int(number_in(request, "offset", 0, 1e9, least=0)),
            limit=int(number_in(request, "limit", 100, MOST)),
        )
    )
    now: dict[str, HostNow] = {}
    if asked.get("live") == "1" and page.rows:
        # A crawl that does not answer is told of elsewhere; the list is worth showing without it.
        with contextlib.suppress(GossamerError):
            now = await shown.hosts_now([row["host"] for row in page.rows])
    return ListedHosts(page.made_at, page.total, page.rows, page.left_out, is_being_made, now)


async def tell_host(request: Request, shown: ShownCrawl) -> object:
    from gossamer.analysis.hosts import picture_of

    name = request.query_params.get("name", "")
    if not name:
        raise UsageError("say which host: ?name=...")
    return await shown.run(picture_of, shown.directory, name[:253])


async def tell_unit(request: Request, shown: ShownCrawl) -> UnitInstances:
    name = request.query_params.get("name", "")
    if not name:
        raise UsageError("say which unit: ?name=...")
    return await shown.run(instances_of, shown.directory, name[:253])


async def tell_layout(request: Request, shown: ShownCrawl) -> Layout:
    return await shown.run(read_layout, layouts_folder(), shown.key)


async def keep_layout(request: Request, shown: ShownCrawl) -> Layout:
    return await shown.run(write_layout, layouts_folder(), shown.key, await request.body())


async def tell_story(request: Request, shown: ShownCrawl) -> object:
    from gossamer.analysis.why import story_of

    url = request.query_params.get("url", "")
    if not url:
        raise UsageError("say which URL: ?url=...")
    return await shown.run(story_of, shown.directory, url)


async def tell_document(request: Request, shown: ShownCrawl) -> object:
    from gossamer.query.archived import view_archived

    asked = request.query_params
    if not asked.get("url"):
        raise UsageError("say which URL: ?url=...")
    return await shown.run(view_archived, shown.directory, asked["url"], asked.get("at", ""))


async def do_order(request: Request, shown: ShownCrawl) -> object:
    order = read_order(request.path_params["order"], await request.body())
    return {"done": await shown.run(carry_out, shown.directory, order)}


def number_in(request: Request, name: str, usual: float, most: float, least: float = 1e-9) -> float:
    """A number of the query. Raises UsageError: it is none, or out of bounds."""
    text = request.query_params.get(name, "")
    try:
        number = float(text) if text else usual
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise UsageError(f"{name} has to be a number, {'0 or more' if not least else 'above 0'} and up to {most:g}")
    return number


# Answers that processes of their own make.


class QuestionAnswers:
    """Answers to questions in SQL, SPARQL and words, and pages that subjects add."""

    def __init__(self) -> None:
        self._console, self._triples, self._words = TableConsole(), TripleConsole(), SearchConsole()
        self._pages = AddedPages()

    async def tell_tables(self, request: Request, shown: ShownCrawl) -> msgspec.Raw:
        asked = request.query_params
        return await self._console.ask(shown.directory, asked.get("sql", ""), asked.get("report", ""))

    async def tell_triples(self, request: Request, shown: ShownCrawl) -> msgspec.Raw:
        return await self._triples.ask(shown.directory, request.query_params.get("query", ""))

    async def tell_words(self, request: Request, shown: ShownCrawl) -> msgspec.Raw:
        asked = request.query_params
        start = int(number_in(request, "start", 0, FARTHEST, least=0))
        most = int(number_in(request, "limit", HITS, MOST_HITS, least=1))
        return await self._words.ask(shown.directory, asked, start, most)

    async def tell_page(self, request: Request, shown: ShownCrawl) -> msgspec.Raw:
        return await self._pages.ask(shown.directory, request.path_params["name"])


#: Word in an address -> the message that is sent.
ORDERS: dict[str, type[ControlRequest]] = {
    "pause": Pause,
    "continue": Continue,
    "suspend": Suspend,
    "unsuspend": Unsuspend,
    "stop": Stop,
    "checkpoint": Checkpoint,
    "set": Change,
    "check-set": CheckChange,
    "set-host": SetHost,
    "block": BlockHosts,
    "decide": Decide,
    "undo": Undo,
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
    except msgspec.MsgspecError as error:
        raise UsageError(f"{word}: {error}") from None


def carry_out(directory: Path, request: ControlRequest) -> str:
    """Send it to the crawl; returns what was done, in words.
    Raises GossamerError: the crawl refused it, or does not run."""
    try:
        with Control(directory, PATIENCE, changing=0.0) as control:
            return control.do(request)
    except NotRunning:
        if isinstance(request, BlockHosts | Checkpoint | Decide):
            return _at_rest(directory, request)
        raise


def graph_of(directory: Path, agent: str = "") -> GraphPicture:
    """The graph of a crawl: by its own word while it runs, otherwise as its directory keeps it.

    Args:
        agent: tell how the graph of this agent stands, where several are at work.

    Raises:
        GossamerError: there is no crawl, or its wiring is damaged.
        FlowError: a unit of it cannot be found, as one of a program of the user's own.
    """
    try:
        with Control(directory, PATIENCE, changing=0.0) as control:
            return control.told(ReadGraph(agent), GraphPicture)
    except NotRunning:
        # What follows imports every part that the wiring names.
        from gossamer.crawls.catalog import catalog
        from gossamer.engine.planning import plan

        return graph_picture(plan(completed(read_wiring(directory)), catalog()), at_work(members_of(directory)))


def instances_of(directory: Path, name: str) -> UnitInstances:
    """The instances of a unit of a running crawl, of all its agents.
    Raises GossamerError: there is no such unit, or no crawl runs."""
    with Control(directory, PATIENCE, changing=0.0) as control:
        return control.told(ReadUnit(name), UnitInstances)


def _at_rest(directory: Path, request: BlockHosts | Checkpoint | Decide) -> str:
    from gossamer.crawls.control import resting

    if isinstance(request, Decide):
        from gossamer.crawls.trap_review import decide_at_rest

        decide_at_rest(directory, request.confirm, request.release)
        return "this holds from now on; a resumed crawl fetches the URLs of released families"

    if isinstance(request, BlockHosts):
        return resting.block(directory, request.names)
    return f"checkpoint {resting.checkpoint(directory, request.name)} is kept"
