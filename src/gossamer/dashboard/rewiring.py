"""Changes of a graph as a form makes them: by names of the catalog, and by nothing that names code, files or machines.

Place in the flow: :mod:`app` takes a form, and gets the text of a change file as `gossamer rewire` takes it; the crawl says what it
would change, and changes it.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tomli_w

from gossamer.crawls.catalog import catalog
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import MAX_CHANGE, CheckRewire, Rewire
from gossamer.crawls.control.wire import ControlRequest
from gossamer.engine.subjects import offered
from gossamer.engine.transports import GROUP
from gossamer.values.errors import UsageError

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
    """Do what a form says, or say what it would change.

    Raises:
        UsageError: it is no such form, or names what a form may not.
        GossamerError: no crawl runs, or it refuses the change; nothing has changed.
    """
    try:
        form = msgspec.json.decode(body, type=Rewiring)
    except msgspec.MsgspecError as error:
        raise UsageError(f"change: {error}") from None
    text = text_of(form.change)
    kind = Rewire if form.apply else CheckRewire
    request: ControlRequest = kind(text, "the form", form.agent, by_form=True)
    with Control(directory, PATIENCE, changing=0.0) as control:
        return Rewired(text, control.do(request), form.apply)


def text_of(change: ChangeForm) -> str:
    """The change file of a form.

    Raises:
        UsageError: it names what a form may not, or says nothing, or too much.
    """
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
