"""Commands of crawls by several agents: `gossamer designations`, `gossamer exchange` and `gossamer merge`."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import click

from gossamer.cli.saying import say_lines, tell
from gossamer.cli.steering import pairs_of
from gossamer.engine.errors import refusing

# `gossamer agent --join HOST:PORT`: an agent of a crawl that a supervisor on another machine has.


@click.command()
@click.option("--join", "to", metavar="HOST:PORT", required=True, help="Join the crawl whose supervisor listens there.")
@click.option(
    "-o", "--output", metavar="DIR", default="gossamer-agent", help="Keep what the agent fetches in this folder."
)
@click.option(
    "--listen",
    metavar="HOST[:PORT]",
    default="",
    help="Let other agents reach this one there; default: where it reaches the supervisor from, and a free port.",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    default="",
    help="Read the secret that all machines of the crawl share from this file; without it, GOSSAMER_SECRET has it.",
)
@click.option(
    "--place", metavar="PLACE", default="", help="Say where this machine stands, for agents that --agent-place binds."
)
def agent(to: str, output: str, listen: str, secret_file: str, place: str) -> None:
    """Run an agent of a crawl that `gossamer crawl --cluster joined --listen HOST:PORT` supervises.

    The supervisor says what is to be crawled; this machine keeps its part in -o. The same command goes on after a kill or a
    restart of the machine, so that systemd, ssh, Slurm or Kubernetes may start it. While the supervisor cannot be reached, the
    agent pauses. The command ends with 0 when the crawl is over.

    \b
    gossamer agent --join crawl.example.org:8650 --secret-file secret -o /var/lib/gossamer
    """
    import asyncio

    from gossamer.agents.joined.machine import JoinedMachine
    from gossamer.crawls.machine import allow_open_files, coroutine_runner
    from gossamer.engine.errors import WiringError
    from gossamer.engine.remote.handshake import SECRET_VARIABLE, read_secret
    from gossamer.values.errors import UsageError

    try:
        secret = read_secret(secret_file, os.environ)
    except WiringError as error:
        raise UsageError(str(error)) from None
    if not secret:
        raise UsageError(
            f"a machine that joins shows the secret of the crawl; name its file with --secret-file, or set {SECRET_VARIABLE}"
        )
    machine = JoinedMachine(Path(output).absolute(), to, listen, secret, tell, place=place)

    async def run() -> None:
        loop, stopping = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, lambda: stopping.add(loop.create_task(machine.stop())))
        await machine.run()

    allow_open_files()
    with coroutine_runner() as runner:
        runner.run(run())


# `gossamer designations DIR [DOMAIN...] [--assign DOMAIN=AGENT]`: which agent has which domain, and another one from now on.


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("domains", metavar="[DOMAIN]...", nargs=-1)
@click.option(
    "--assign",
    "assigned",
    metavar="DOMAIN=AGENT",
    multiple=True,
    help="Give this domain and its queue to this agent (repeatable).",
)
def designations(directory: str, domains: Sequence[str], assigned: Sequence[str]) -> None:
    """Print which agent has which domain, one on each line; `-` marks a domain that no agent has yet.

    While the crawl runs, --assign gives a domain to another agent. The domain's queue and all knowledge of its hosts move with it,
    and the other domains are fetched meanwhile. With --designation master or --store, all agents pause for some seconds instead,
    and a crawl that rests can give a domain away too.

    \b
    gossamer designations mycrawl
    gossamer designations mycrawl www.example.org
    gossamer designations mycrawl --assign example.org=agent-01
    """
    path = Path(directory)
    if assigned and domains:
        raise click.UsageError("give domains to print, or --assign, not both")
    from gossamer.agents.membership import assign_at_rest
    from gossamer.agents.membership import designations as told
    from gossamer.crawls.control.client import Control, NotRunning
    from gossamer.crawls.control.messages import Assign
    from gossamer.storage.tables.places import begun_crawl

    if assigned:
        agents = pairs_of(assigned, "example.org=agent-01")
        try:
            with Control(path) as control:
                print(control.do(Assign(agents)))
        except NotRunning:
            print(assign_at_rest(path, agents))
        return

    for domain, agent in told(begun_crawl(directory), domains):
        print(f"{domain}\t{agent or '-'}")


# `gossamer exchange | merge DIR`: URLs between agents that no network connects, out of a crawl and into one.

#: Seconds that a running crawl may take over a million URLs.
LONGEST = 600.0


def _say(line: str) -> None:
    tell(line)


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--again", is_flag=True, help="Also write the URLs that were written before and that no agent has confirmed."
)
@click.option(
    "--lost",
    type=click.IntRange(1),
    metavar="N",
    help="Also write every URL that was ever sent to agent N, which lost its directory and begins again; only while no crawl runs.",
)
def exchange(directory: str, again: bool, lost: int | None) -> None:
    """Write the URLs that a crawl owes other agents into files, for `gossamer merge` there.

    The crawl was begun with --exchange files, and runs or rests. It writes such files by itself when it ends, and every ten
    minutes. They lie in DIR/exchange/out until the other agent's files say that they were merged; bring them there by any
    medium, in any order, as often as you like. With --again, URLs of lost files are written into new ones.
    """
    import asyncio

    from gossamer.agents.merging import WriteFiles, at_rest, exchanging_wiring, owe_to_lost, written_lines
    from gossamer.crawls.control.client import Control, NotRunning
    from gossamer.values.errors import UsageError

    path = Path(directory)
    exchanging_wiring(path)

    async def written() -> list[str]:
        async with at_rest(path, _say) as (outbox, intake):
            if lost is not None:
                await owe_to_lost(path, outbox, intake.seen, lost)
            elif again:
                await outbox.owe_again()
            return list(written_lines(await outbox.write(), path))

    try:
        with Control(path, LONGEST) as control:
            if lost is not None:
                raise UsageError(f"a crawl is running in {directory}; stop it first: gossamer stop {directory}")
            lines = control.names(WriteFiles(again))
    except NotRunning:
        with refusing(UsageError, "no exchange file can be written"):
            lines = asyncio.run(written())
    say_lines(lines or ("nothing is owed",))


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("files", metavar="FILE|FOLDER...", nargs=-1, required=True, type=click.Path())
def merge(directory: str, files: tuple[str, ...]) -> int:
    """Merge exchange files of other agents into a crawl that runs or rests.

    Each file is verified first. One that is cut, damaged, forged or of another crawl is refused with a line that says so, nothing
    of it is merged, and the exit status is 2; the others are merged. Files for other agents are passed over. If a sound file has
    URLs that no crawl can keep, the rest of it is merged, a line names them, and the exit status is 2. It does no harm to merge a
    file twice.

    \b
    gossamer merge mycrawl /media/stick/*.urls
    gossamer resume mycrawl
    """
    import asyncio

    from gossamer.agents.merging import Merged, MergeFiles, at_rest, take_in, taken_files
    from gossamer.crawls.control.client import Control, NotRunning
    from gossamer.engine.sheet import show_count

    path = Path(directory)
    taken = taken_files(path, map(Path, files))
    # On one stick lie the files of all agents; only a person who names nothing else means a file for another agent.
    refused = taken.refused
    if not taken.files and not any(map(os.path.isdir, files)):
        refused = [*refused, *taken.for_others]
    for line in refused:
        tell(line)
    if not (taken.files or refused or taken.for_others):
        tell("no exchange file is among the files; names of exchange files end in .urls")
        return 2
    if not taken.files and taken.for_others and not refused:
        tell(f"of {show_count(len(taken.for_others), 'exchange file')} none is for this agent")

    async def merged() -> Merged:
        async with at_rest(path, _say) as (outbox, intake):
            return await take_in(path, outbox, intake, _say)

    try:
        with Control(path, LONGEST) as control:
            print(control.do(MergeFiles()))
    except NotRunning:
        print(asyncio.run(merged()).told)
    return 2 if refused else 0
