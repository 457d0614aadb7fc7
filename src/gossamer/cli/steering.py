"""`gossamer pause | continue | stop | checkpoint | set | rewire | block | ask | traps DIR`: steer a crawl of another process.

Each asks over the crawl's control socket (:mod:`gossamer.crawls.control`) and prints what was done. Where no crawl runs,
the exit status is 2 and one line says how to go on.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.elsewhere import same_setting
from gossamer.cli.helping import STORE, as_json, crawl_to_read, option
from gossamer.cli.saying import as_called, given_text, say_json, say_lines
from gossamer.crawls.control import messages
from gossamer.crawls.control.client import CHANGING, Control, NotRunning, NotSupervised
from gossamer.crawls.control.wire import ControlRequest, Listed, Malformed, Told
from gossamer.storage.tables.places import begun_crawl
from gossamer.values.errors import UsageError
from gossamer.values.hosts import given_host

if TYPE_CHECKING:
    from gossamer.crawls.trap_review import Suspicions

#: Seconds for a checkpoint, which flushes what the store has in memory, and for a change of the graph, which lets what leaves
#: finish what it fetches.
LONGEST = 300.0

_ONE_AGENT = "Change this one of several agents alone, until it begins again."


def carry_out(directory: Path, request: ControlRequest, patience: float = 30.0, *, changing: float = CHANGING) -> str:
    """Have a crawl do it, or do it to a crawl at rest, where that can be; returns what was done, in words. Arguments as those of
    :class:`~gossamer.crawls.control.client.Control`. Raises NotRunning: only a running crawl could do it; GossamerError: it was not
    done, and nothing has changed."""
    try:
        with Control(directory, patience, changing=changing) as control:
            return control.do(request)
    except NotRunning:
        from gossamer.crawls.control import resting

        match request:
            case messages.Decide():
                from gossamer.crawls.trap_review import decide_at_rest

                decide_at_rest(directory, request.confirm, request.release)
                return f"this holds from now on; `gossamer resume {directory}` fetches the URLs of released families"
            case messages.BlockHosts():
                return resting.block(directory, request.names)
            case messages.Checkpoint():
                from gossamer.agents.handing_over import refuse_on_the_way

                refuse_on_the_way(directory)
                return f"checkpoint {resting.checkpoint(directory, request.name)} is kept"
            case _:
                raise


def go_back(directory: Path, name: str, *, changing: float = CHANGING) -> str:
    """Let a crawl at rest be where it was at a checkpoint; returns what was done, in words. Raises UsageError: the crawl runs, or
    there is no such checkpoint; CrawlDirectoryError: it cannot be read."""
    from gossamer.agents.handing_over import forget_note
    from gossamer.crawls.control import resting

    with contextlib.suppress(NotRunning), Control(directory, changing=changing):
        raise UsageError(f"a crawl is running in {directory}; stop it first: gossamer stop {directory}")
    resting.restore(directory, name, forget_note)
    return f"the crawl is where it was at checkpoint {name}; `gossamer resume {directory}` goes on from there"


def _do(directory: str, request: ControlRequest, patience: float = 30.0) -> None:
    print(as_called(carry_out(Path(directory), request, patience)))


def pairs_of(pairs: Sequence[str], example: str) -> dict[str, str]:
    """KEY=VALUE, each once; `example` is for who writes something else."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise click.UsageError(f"{pair!r}: write KEY=VALUE, as {example}")
        values[key] = value
    return values


@click.command()
@click.argument("directory", metavar="DIR")
@option("--unit NAME", "Suspend this component alone, until `gossamer continue DIR --unit NAME`.")
@option("--agent NAME", "Suspend it in this one of several agents.", default="")
def pause(directory: str, unit: str | None, agent: str) -> None:
    """Pause a running crawl: it sends no more requests until `gossamer continue`.

    Requests in flight are finished and their pages kept. The crawl stays in memory, and its hosts keep their turns.
    """
    _check_agent(unit, agent)
    _do(directory, messages.Suspend(unit, agent) if unit else messages.Pause())


@click.command("continue")
@click.argument("directory", metavar="DIR")
@option("--unit NAME", "Let this component go on, which was suspended by `gossamer pause --unit`.")
@option("--agent NAME", "Let it go on in this one of several agents.", default="")
def continue_(directory: str, unit: str | None, agent: str) -> None:
    """Let a paused crawl go on. One that has ended goes on with `gossamer resume DIR`."""
    _check_agent(unit, agent)
    _do(directory, messages.Unsuspend(unit, agent) if unit else messages.Continue())


def _check_agent(unit: str | None, agent: str) -> None:
    if agent and not unit:
        raise click.UsageError("--agent says in which agent a unit is suspended; also give --unit")


@click.command()
@click.argument("directory", metavar="DIR")
@option("--now", "Do not wait for requests in flight; a resumed crawl sends them again.")
def stop(directory: str, now: bool) -> None:
    """End a running crawl gracefully, as one Ctrl-C does; `gossamer resume` goes on with it."""
    try:
        _do(directory, messages.Stop(now))
    except NotSupervised as alone:
        for agent in alone.agents:
            with Control(Path(directory), agent=agent) as control:
                print(f"{agent}, which has no supervisor: {control.do(messages.Stop(now))}")


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("name", default="")
@option("--list lists", "Print the names of checkpoints, the oldest first.")
@option("--restore NAME", "Go back to this checkpoint; only while no crawl runs.")
def checkpoint(directory: str, name: str, lists: bool, restore: str | None) -> None:
    """Save the state of a crawl under NAME (by default the time), so that you can go back to it.

    If you go back to a checkpoint, documents that were archived after it stay in the archive, and the crawl fetches
    their URLs again.

    \b
    gossamer checkpoint mycrawl before-the-big-site
    gossamer checkpoint mycrawl --restore before-the-big-site && gossamer resume mycrawl
    """
    if sum((bool(name), lists, restore is not None)) > 1:
        raise click.UsageError("give one of NAME, --list and --restore NAME")
    path = Path(directory)
    if restore is not None:
        print(as_called(go_back(path, restore)))
    elif not lists:
        _do(directory, messages.Checkpoint(name), LONGEST)
    else:
        try:
            with Control(path) as control:
                names = control.names(messages.Checkpoints())
        except NotRunning:
            from gossamer.crawls.control import resting

            names = resting.checkpoints(path)
        print("\n".join(names))


@click.command("set")
@click.argument("directory", metavar="DIR")
@click.argument("pairs", metavar="KEY=VALUE...", nargs=-1, required=True)
@option("--host HOST", "Change delay, per-host or max-pages of this host, or of all below *.DOMAIN.")
@option("--agent NAME", _ONE_AGENT, default="")
def set_(directory: str, pairs: Sequence[str], host: str | None, agent: str) -> None:
    """Change settings of a running crawl, at once and for every later run.

    KEY is UNIT.SETTING, as `gossamer topology` shows them, or an option of `gossamer crawl`. Either all of them are
    changed, or none. With --host, only this host changes; `none` removes its own value.

    \b
    gossamer set mycrawl delay=5s rate=10
    gossamer set mycrawl frontier.concurrency=16
    gossamer set mycrawl --host slow.example.org delay=30s
    """
    values = pairs_of(pairs, "delay=30s" if host is not None else "delay=5s or frontier.concurrency=16")
    for key in values:
        if same := same_setting(key):
            raise click.UsageError(f"there is no option {key!r}{same}")
    if host is None:
        _do(directory, messages.Change(values, agent))
        return
    given_host(host.removeprefix("*."), host)
    if agent:
        raise click.UsageError("the agent that has the host takes its settings; leave --agent out")
    _do(directory, messages.SetHost(host, values))


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("change", metavar="[CHANGE.toml]", default="")
@option("--check", "Only show what CHANGE.toml would change.")
@option("--undo", "Undo the last change; settings that were changed since then stay changed.")
@option("--agent NAME", _ONE_AGENT, default="")
def rewire(directory: str, change: str, check: bool, undo: bool, agent: str) -> None:
    """Change the graph of a running crawl while it works: add, replace and remove units and connectors.

    CHANGE.toml has the syntax of a wiring; `-` reads standard input. An entry with `use` (for a connector: `address`) adds a
    unit or replaces the one of that name; without it, the entry changes only the keys that it names.
    `remove = ["components.NAME"]` lists the entries to remove. The change is checked as a whole first; if it does not
    fit, nothing is changed. No item is lost, and a resumed crawl runs the changed graph.

    \b
    gossamer topology mycrawl/crawl.toml          # what there is
    gossamer rewire mycrawl change.toml
    gossamer rewire mycrawl --undo
    """
    if bool(change) == undo or (check and undo):
        raise click.UsageError("give either CHANGE.toml or --undo")
    if undo:
        _do(directory, messages.Undo(agent), LONGEST)
        return
    text = given_text(change)
    if not text.strip() or len(text) > messages.MAX_CHANGE:
        told = f"has {len(text)} characters; a change has at most {messages.MAX_CHANGE}" if text.strip() else "is empty"
        raise UsageError(f"{change}: {told}; see `gossamer rewire --help`")
    kind = messages.CheckRewire if check else messages.Rewire
    _do(directory, kind(text, Path(change).name, agent), LONGEST)


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("names", metavar="HOST_OR_DOMAIN...", nargs=-1, required=True)
def block(directory: str, names: Sequence[str]) -> None:
    """Send no more requests to hosts, or to any host of a domain.

    A running crawl stops asking them within a second, and they stay blocked when it is resumed. URLs that wait in their
    queues end as `blocked`.
    """
    from gossamer.frontier.politeness.rules import Blocklist

    begun_crawl(directory)
    Blocklist(names)
    _do(directory, messages.BlockHosts(list(names)))


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("name")
@click.argument("pairs", metavar="[FIELD=VALUE]...", nargs=-1)
def ask(directory: str, name: str, pairs: Sequence[str]) -> None:
    """Send a running crawl a request of the kind NAME, which an installed package offers.

    The package defines the fields of the request and its effect. The crawl has to run with the same packages.

    \b
    gossamer ask mycrawl quiet host=example.org
    """
    import msgspec

    values = pairs_of(pairs, "host=example.org")
    try:
        from gossamer.crawls.control.server import offered_request

        kind = offered_request(name)
        if kind is None:
            raise UsageError(f"no installed package offers a request {name!r}")
        request = msgspec.convert({"do": name, **values}, kind, strict=False)
    except (Malformed, msgspec.ValidationError) as error:
        raise UsageError(f"{name}: {error}") from None
    with Control(Path(directory), 30.0) as control:
        answer = control.ask(request)
    match answer:
        case Listed(names):
            say_lines(names)
        case Told(value):
            say_json(value)
        case _:
            print(answer.text)


# `gossamer traps DIR`: what was set aside and why; a person confirms a trap or releases what is none.


@click.command()
@crawl_to_read
@option("--confirm ID...", "Refuse this family from now on, because it is a trap (repeatable).")
@option("--release ID|all...", "Never suspect this family again, because it is no trap (repeatable).")
@as_json
def traps(directory: str, confirm: tuple[str, ...], release: tuple[str, ...], as_json: bool) -> None:
    """List the families of URLs that look like traps, with evidence, and hosts with unusually many URLs.

    Such URLs are set aside: they wait behind all others, and the crawl fetches a few of them to see whether they bring
    anything new. --confirm refuses a family from now on, --release lets the crawl fetch it; both work while the crawl
    runs, and also apply to later runs.

    \b
    gossamer traps mycrawl
    gossamer traps mycrawl --confirm 1f0c2ab39d
    gossamer resume mycrawl --release all
    """
    from gossamer.crawls.trap_review import suspicions_of

    path, store = Path(directory), click.get_current_context().meta.get(STORE)
    begun_crawl(path)
    if store is not None and (confirm or release):
        raise UsageError(
            f"--confirm and --release change a crawl, and {store} is a store; first bring the crawl back: "
            f"gossamer resume {store} -o DIR"
        )
    if confirm or release:
        _do(directory, messages.Decide(list(confirm), list(release)))
        return
    found = suspicions_of(path)
    say_json(found) if as_json else say_lines(trap_lines(found))


def trap_lines(found: "Suspicions") -> list[str]:
    """The pages that were set aside, for people."""
    lines = [] if found.families else ["nothing is set aside"]
    for one in found.families:
        lines.append(f"{one.id}  {one.family}: {one.trap}, {one.state}; {one.set_aside} set aside, {one.probes} probed")
        lines += [f"            {text}" for text in (one.evidence, *one.samples)]
    if found.hosts:
        lines.append("hosts with unusually many URLs:")
        lines += [f"  {one.host}: {one.urls} URLs, {one.pages} pages" for one in found.hosts]
    return lines
