"""`gossamer traps DIR`: what was set aside and why; a person confirms a trap or releases what is none."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.saying import say_json, say_lines

if TYPE_CHECKING:
    from gossamer.assembly.suspicions import Suspicions


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--confirm", multiple=True, metavar="ID", help="Refuse this family from now on, because it is a trap (repeatable)."
)
@click.option(
    "--release",
    multiple=True,
    metavar="ID|all",
    help="Never suspect this family again, because it is no trap (repeatable).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
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
    from gossamer.assembly.control.client import check_is_crawl
    from gossamer.assembly.suspicions import suspicions_of

    path = Path(directory)
    check_is_crawl(path)
    if confirm or release:
        print(_decide(path, list(confirm), list(release)))
        return
    found = suspicions_of(path)
    say_json(found) if as_json else say_lines(lines_of(found))


def _decide(path: Path, confirm: list[str], release: list[str]) -> str:
    from gossamer.assembly.control.client import Control, NotRunning
    from gossamer.assembly.control.messages import Decide
    from gossamer.assembly.suspicions import decide_at_rest

    try:
        with Control(path) as control:
            return control.do(Decide(confirm, release))
    except NotRunning:
        decide_at_rest(path, confirm, release)
        return f"this holds from now on; `gossamer resume {path}` fetches the URLs of released families"


def lines_of(found: "Suspicions") -> list[str]:
    """What was set aside, for people."""
    lines = []
    for one in found.families:
        lines.append(f"{one.id}  {one.family}: {one.trap}, {one.state}; {one.set_aside} set aside, {one.probes} probed")
        lines.append(f"            {one.evidence}")
        lines += [f"            {url}" for url in one.samples]
    if not found.families:
        lines.append("nothing is set aside")
    if found.hosts:
        lines.append("hosts with unusually many URLs:")
        lines += [f"  {one.host}: {one.urls} URLs, {one.pages} pages" for one in found.hosts]
    return lines
