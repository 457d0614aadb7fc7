"""Messages to a running crawl: the one list of control messages, each spelled once.

A request is a class below: its fields are what is sent, its :meth:`~ControlRequest.act` is what the crawl does, on its event loop,
in short steps that hold nothing up. A new one is a class here and, for people, a command that sends it. An installed
package may offer its own (:mod:`~gossamer.crawls.control.server`). How they travel is said in
:mod:`gossamer.crawls.control.wire`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from gossamer.crawls.control.wire import Answered, ControlRequest, Done, Listed, ProcessRequest, told
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.crawls.control.steering import Settable, Steerable, Stoppable
    from gossamer.engine.wiring import Wiring

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]

#: One of several agents by its name, which alone is asked, or changes until it begins again; empty: the crawl as a whole.
OneAgent = Annotated[str, msgspec.Meta(max_length=100)]

#: Characters of a change of the graph at most: some thousand units, and at four bytes each still a request.
MAX_CHANGE = 250_000
ChangeText = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_CHANGE)]

#: Answers that a crawl of one agent and one of several give alike.
PAUSED = "paused: the crawl makes no new requests and finishes those in flight; `gossamer continue DIR` goes on"
GOES_ON = "the crawl goes on"
STOPS = "stopping: the requests in flight are finished first"
STOPS_AT_ONCE = "stopping at once: `gossamer resume` repeats the requests that are in flight"


class Status(ControlRequest, frozen=True, tag="status"):
    """How does it stand?"""

    steers = False
    units: bool = False
    """Also what every unit has counted, and what every connector did."""
    agent: OneAgent = ""

    async def act(self, crawl: "Steerable") -> "Answered":
        return told(await crawl.standing(units=self.units))


class Pause(ControlRequest, frozen=True, tag="pause"):
    """Hand out no more until :class:`Continue`; tasks in flight are finished."""

    async def act(self, crawl: "Steerable") -> "Answered":
        crawl.pause()
        return Done(PAUSED)


class Continue(ControlRequest, frozen=True, tag="continue"):
    """Hand out again."""

    async def act(self, crawl: "Steerable") -> "Answered":
        crawl.go_on()
        return Done(GOES_ON)


class Suspend(ControlRequest, frozen=True, tag="suspend"):
    """Let one component take up nothing more until :class:`Unsuspend`, or until its process begins again."""

    unit: Name
    agent: OneAgent = ""

    async def act(self, crawl: "Steerable") -> "Answered":
        is_idle = await crawl.suspensions.suspend(self.unit)
        return Done(f"{self.unit} is suspended" + ("" if is_idle else "; it has yet to finish what it has in hand"))


class Unsuspend(ControlRequest, frozen=True, tag="unsuspend"):
    """Let a suspended component go on."""

    unit: Name
    agent: OneAgent = ""

    async def act(self, crawl: "Steerable") -> "Answered":
        crawl.suspensions.unsuspend(self.unit)
        return Done(f"{self.unit} goes on")


class Stop(ProcessRequest, frozen=True, tag="stop"):
    """End, as Ctrl-C does; the crawl can be resumed."""

    now: bool = False
    """Do not wait for what is in flight, as a second Ctrl-C."""

    async def act(self, crawl: "Stoppable") -> "Answered":
        """Stop."""
        if self.now:
            crawl.abort()
            return Done(STOPS_AT_ONCE)
        crawl.stop()
        return Done(STOPS)


class Checkpoint(ControlRequest, frozen=True, tag="checkpoint"):
    """Keep the present state under a name."""

    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """Empty: the time is its name."""

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.storage.ledger.opening import checkpoint_name

        path = await crawl.ledger.checkpoint_at_work(self.name or checkpoint_name())
        return Done(f"checkpoint {path.name} is kept")


class Checkpoints(ControlRequest, frozen=True, tag="checkpoints"):
    """Which checkpoints are there?"""

    steers = False

    async def act(self, crawl: "Steerable") -> "Answered":
        return Listed(crawl.ledger.checkpoints())


class Change(ControlRequest, frozen=True, tag="set"):
    """Change settings, by `UNIT.SETTING` or by the name of an option; all of them, or none."""

    values: Annotated[dict[Text, str], msgspec.Meta(min_length=1, max_length=100)]
    agent: OneAgent = ""
    by_form: bool = False
    """A browser asks: a setting that names files, code or secrets is refused."""

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.steering import change_values

        return Done(await change_values(crawl, self.values, by_form=self.by_form))

    def noted(self, crawl: "Settable", answered: "Answered") -> dict[str, Any]:
        """Without what is secret."""
        from gossamer.crawls.control.steering import without_secrets

        return {**super().noted(crawl, answered), "values": without_secrets(crawl.graph, self.values)}


class Rewire(ControlRequest, frozen=True, tag="rewire"):
    """Change the graph: a change file's text."""

    change: ChangeText
    source: Annotated[str, msgspec.Meta(max_length=4096)] = "change"
    """The name of the text in messages."""
    agent: OneAgent = ""
    by_form: bool = False
    """As in :class:`Change`."""

    async def act(self, crawl: "Steerable") -> "Answered":
        return Done((await crawl.rewire(change_of(crawl, self))).told)

    def noted(self, crawl: "Settable", answered: "Answered") -> dict[str, Any]:
        """The change in words; the text may hold a password."""
        told = {"do": "rewire", "source": self.source, "done": getattr(answered, "text", "")}
        return {**told, "agent": self.agent} if self.agent else told


class CheckRewire(ControlRequest, frozen=True, tag="check-rewire"):
    """Tell which changes :class:`Rewire` would make, and make none."""

    steers = False
    change: ChangeText
    source: Annotated[str, msgspec.Meta(max_length=4096)] = "change"
    agent: OneAgent = ""
    by_form: bool = False
    """As in :class:`Change`."""

    async def act(self, crawl: "Steerable") -> "Answered":
        return Done(crawl.foreseen(change_of(crawl, self)).told)


class Undo(ControlRequest, frozen=True, tag="undo"):
    """Take the last change of the graph back."""

    agent: OneAgent = ""

    async def act(self, crawl: "Steerable") -> "Answered":
        return Done((await crawl.undo()).told)


class CheckChange(ControlRequest, frozen=True, tag="check-set"):
    """Would :class:`Change` do this? Nothing is changed."""

    steers = False
    values: Annotated[dict[Text, str], msgspec.Meta(min_length=1, max_length=100)]
    agent: OneAgent = ""
    by_form: bool = False
    """As in :class:`Change`."""

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.steering import check_all_values

        check_all_values(crawl, self.values, by_form=self.by_form)
        return Done("these values do")


class ReadGraph(ControlRequest, frozen=True, tag="graph"):
    """Which units and connectors are there, with which settings?"""

    steers = False
    agent: OneAgent = ""

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.picture import graph_picture

        return told(graph_picture(crawl.graph))


class ReadUnit(ControlRequest, frozen=True, tag="unit"):
    """Tell the counts of each instance of this unit, and the settings by which it goes."""

    steers = False
    name: Name

    async def act(self, crawl: "Steerable") -> "Answered":
        return told(await crawl.instances(self.name))


class BlockHosts(ControlRequest, frozen=True, tag="block"):
    """Ask these hosts, and all hosts below these domains, for nothing any more."""

    names: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=50_000)]

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.steering import block

        return Done(await block(crawl, self.names))


class Decide(ControlRequest, frozen=True, tag="decide"):
    """Take a person's word for what is a trap, and what is none."""

    confirm: Annotated[list[Name], msgspec.Meta(max_length=1_000)] = msgspec.field(default_factory=list)
    """Identifiers of families that are traps."""
    release: Annotated[list[Name], msgspec.Meta(max_length=1_000)] = msgspec.field(default_factory=list)
    """Those of families that are none; `all` for every one."""

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.steering import decide

        return Done(await decide(crawl, crawl.ledger.aside(), self.confirm, self.release))


class Assign(ControlRequest, frozen=True, tag="assign"):
    """Give domains to agents of one's own choice; all of them, or none."""

    agents: Annotated[dict[Name, Name], msgspec.Meta(min_length=1, max_length=1000)]
    """Domain -> agent."""

    async def act(self, crawl: "Steerable") -> "Answered":
        raise UsageError("the crawl has one agent, which has all domains")


class Why(ControlRequest, frozen=True, tag="why"):
    """Tell the story of this URL in the crawl."""

    steers = False
    url: Text

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.facts import known_of

        return told(known_of(crawl.ledger, self.url))


class ReadHost(ControlRequest, frozen=True, tag="host"):
    """Tell the facts of this host in the crawl."""

    steers = False
    name: Name

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.facts import host_of_running

        return told(host_of_running(crawl, self.name))


class ReadHosts(ControlRequest, frozen=True, tag="hosts"):
    """How do these hosts stand now?"""

    steers = False
    names: Annotated[list[Name], msgspec.Meta(max_length=500)]

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.facts import hosts_of_running

        return told(hosts_of_running(crawl, self.names))


class SetHost(ControlRequest, frozen=True, tag="set-host"):
    """Change what holds for one host, or for all below `*.DOMAIN`: `delay`, `per-host`, `max-pages`; all of it, or nothing."""

    name: Name
    values: Annotated[
        dict[Name, Annotated[str, msgspec.Meta(max_length=100)]], msgspec.Meta(min_length=1, max_length=10)
    ]
    """`none` takes away what was set."""

    async def act(self, crawl: "Steerable") -> "Answered":
        from gossamer.crawls.control.steering import set_host

        return Done(await set_host(crawl, self.name, self.values))


def change_of(crawl: "Settable", request: Rewire | CheckRewire) -> "Callable[[Wiring], Wiring]":
    """The wiring that a request makes of another one. A change that a form may not make is refused when it is called."""
    from gossamer.crawls.control.picture import check_wiring_of_form
    from gossamer.engine.wiring import changed

    def made(wiring: "Wiring") -> "Wiring":
        then = changed(wiring, request.change, request.source)
        if request.by_form:
            check_wiring_of_form(crawl.graph, wiring, then)
        return then

    return made
