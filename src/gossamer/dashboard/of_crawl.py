"""Answers about one crawl: everything at the addresses below `/api/crawls/KEY`.

Place in the flow: :mod:`app` has the list of addresses. Work that waits is done in threads (:mod:`crawls`); answers to questions,
pages that subjects add, and exports are made by processes of their own (:mod:`questions`, :mod:`exporting`).

A form changes the graph by names of the catalog, and by nothing that names code, files or machines: it becomes the text of a change
file as `gossamer rewire` takes it, and the crawl says what it would change, and changes it.
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
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.host_facts import HostNow
from gossamer.crawls.control.instances import UnitInstances
from gossamer.crawls.control.messages import MAX_CHANGE, CheckRewire, Rewire
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.wire import ControlRequest
from gossamer.dashboard import asking
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
from gossamer.storage.tables.row_tables import SampleRow
from gossamer.values.errors import GossamerError, UsageError

#: Seconds for a change: what leaves finishes what it fetches first.
PATIENCE = 300.0

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
    with Control(directory, PATIENCE, changing=0.0) as control:
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
    return await shown.run(asking.instances_of, shown.directory, name[:253])


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
    order = asking.read_order(request.path_params["order"], await request.body())
    return {"done": await shown.run(asking.carry_out, shown.directory, order)}


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
