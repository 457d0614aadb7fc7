"""Orders from the browser, and changes of the graph by a form.

Place in the flow: :mod:`of_crawl` has them carried out. They are control messages by the words of the commands
(:mod:`gossamer.crawls.control.messages`), a closed list. A form changes the graph by names of the catalog: it becomes the text of a
change file as `gossamer rewire` takes it, and the crawl says what it would change, and changes it. Nothing in either names code,
files or URLs to load.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tomli_w

from gossamer.crawls.catalog import catalog
from gossamer.crawls.control import resting
from gossamer.crawls.control.client import Control, NotRunning
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
from gossamer.crawls.control.wire import ControlRequest
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.old_wirings import completed
from gossamer.crawls.trap_review import decide_at_rest
from gossamer.dashboard.sites import read_form
from gossamer.engine.planning import plan
from gossamer.engine.subjects import offered
from gossamer.engine.transports import GROUP
from gossamer.storage.recovery import members_of
from gossamer.values.agents import at_work
from gossamer.values.errors import UsageError

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
    return Offered(known.names("components"), known.names("providers"), _schemes())


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
    known = _schemes()
    for name, one in change.connectors.items():
        scheme = one.address.partition(":")[0] if one.address is not msgspec.UNSET else "local"
        if scheme not in known:
            raise UsageError(
                f"connectors.{name}: a form takes addresses of {', '.join(known)}; write a change file for {scheme!r}"
            )
    text = tomli_w.dumps(msgspec.to_builtins(change))
    if not text.strip() or len(text) > MAX_CHANGE:
        raise UsageError("the change is empty" if not text.strip() else f"a change has at most {MAX_CHANGE} characters")
    return text


def _schemes() -> list[str]:
    return [*SCHEMES, *sorted({entry.name for entry in offered(GROUP)})]


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
        match request:
            case Decide():
                decide_at_rest(directory, request.confirm, request.release)
                return "this holds from now on; a resumed crawl fetches the URLs of released families"
            case BlockHosts():
                return resting.block(directory, request.names)
            case Checkpoint():
                return f"checkpoint {resting.checkpoint(directory, request.name)} is kept"
            case _:
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
        return graph_picture(plan(completed(read_wiring(directory)), catalog()), at_work(members_of(directory)))


def instances_of(directory: Path, name: str) -> UnitInstances:
    """The instances of a unit of a running crawl, of all its agents.
    Raises GossamerError: there is no such unit, or no crawl runs."""
    with Control(directory, PATIENCE, changing=0.0) as control:
        return control.told(ReadUnit(name), UnitInstances)
