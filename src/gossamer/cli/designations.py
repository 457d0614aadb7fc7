"""`gossamer designations DIR [DOMAIN...] [--assign DOMAIN=AGENT]`: which agent has which domain, and another one from now on."""

from collections.abc import Sequence
from pathlib import Path

import click

from gossamer.cli.steering import pairs_of


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("domains", metavar="[DOMAIN]...", nargs=-1)
@click.option(
    "--assign",
    "assigned",
    metavar="DOMAIN=AGENT",
    multiple=True,
    help="Give this domain and its queue to this agent, if masters divide the crawl (repeatable).",
)
def designations(directory: str, domains: Sequence[str], assigned: Sequence[str]) -> None:
    """Print which agent has which domain, one on each line; `-` marks a domain that no agent has yet.

    With --designation master, --assign gives a domain to another agent, whether the crawl runs or rests. The domain's queue and all
    knowledge of its hosts move with it. Meanwhile all agents pause for some seconds.

    \b
    gossamer designations mycrawl
    gossamer designations mycrawl www.example.org
    gossamer designations mycrawl --assign example.org=agent-01
    """
    path = Path(directory)
    if assigned and domains:
        raise click.UsageError("give domains to print, or --assign, not both")
    if assigned:
        print(_assigned(path, pairs_of(assigned, "example.org=agent-01")))
        return
    from gossamer.operations.designations import designations as told
    from gossamer.query.places import crawl_directory

    for domain, agent in told(crawl_directory(directory), domains):
        print(f"{domain}\t{agent or '-'}")


def _assigned(directory: Path, agents: dict[str, str]) -> str:
    from gossamer.assembly.control.client import Control, NotRunning
    from gossamer.assembly.control.messages import Assign

    try:
        with Control(directory) as control:
            return control.do(Assign(agents))
    except NotRunning:
        from gossamer.operations.designations import assign_at_rest

        return assign_at_rest(directory, agents)
