"""Orders to a crawl from the browser: control messages by the words of the commands, a closed list.

Place in the flow: :mod:`app` takes a word and a body; what it comes to is a message that `gossamer` would send too
(:mod:`gossamer.crawls.control.messages`). Names of files, code and URLs to load are in none of them.
"""

from pathlib import Path

import msgspec

from gossamer.crawls.control.client import Control, NotRunning
from gossamer.crawls.control.instances import UnitInstances
from gossamer.crawls.control.messages import (
    BlockHosts,
    Change,
    CheckChange,
    Checkpoint,
    Continue,
    Decide,
    Pause,
    ReadGraph,
    ReadUnit,
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
from gossamer.storage.recovery import members_of
from gossamer.values.agents import at_work
from gossamer.values.errors import UsageError

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

#: Seconds for what is ordered: a checkpoint flushes what the store has in memory.
PATIENCE = 60.0


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
