"""The dashboard beside a crawl (`--dashboard`): a process of its own, which the crawl starts, does not notice, and ends.

Place in the flow: :mod:`gossamer.cli.crawl` enters :func:`dashboard_beside` around the run. The crawl waits for nothing here: when
the dashboard cannot start, or dies, a line says so.
"""

import contextlib
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.helping import option
from gossamer.cli.saying import tell
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.agents.crawl import SupervisedCrawl


# `gossamer dashboard [DIR...]`: crawls in the browser.


@click.command()
@click.argument("directories", metavar="[DIR...]", nargs=-1)
@option("--address [HOST:]PORT", "Listen here; otherwise at a free port of 127.0.0.1.", default="")
@option("--certificate FILE", "Speak TLS with this certificate (PEM).", default="")
@option("--key FILE", "The key of the certificate (PEM).", default="")
@option("--without-tls", "Let other machines in without TLS; everyone who can read the traffic then gets the token.")
def dashboard(directories: tuple[str, ...], address: str, certificate: str, key: str, without_tls: bool) -> int:
    """Show crawls in the browser, until Ctrl-C: how they stand, their problems, and the remedies.

    DIR is a crawl, or a folder with crawls; without any, the crawls in the current folder are shown. The crawls may run or rest,
    and do not notice. Each line that is printed is an address: the first opens everything, the second shows and changes nothing.
    """
    from gossamer.dashboard.app import read_address

    listening = read_address(address, certificate, key, is_open=without_tls)
    places = [Path(name) for name in directories or (".",)]
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place} is not a directory; name a crawl, or a folder with crawls")
    from gossamer.dashboard.app import serve

    serve(places, listening, lambda full, read: print(f"{full}\n{read}", flush=True))
    return 0


#: Seconds between two looks whether the crawl has begun, and that the dashboard has to end.
LOOK, GRACE = 0.1, 3.0

#: What an address to listen at looks like. Anything else after the option is a seed: `--dashboard https://example.org/`.
ADDRESS = re.compile(r"([\w.-]*:|\[[0-9a-f:]+\]:)?\d+", re.ASCII | re.IGNORECASE)


def parted(given: str | None) -> tuple[str | None, list[str]]:
    """What stood behind the option, as the address of the dashboard (None: there is to be none), and seeds.
    Raises UsageError: no dashboard can be at this address."""
    if given is None:
        return None, []
    address, seeds = (given, []) if not given or ADDRESS.fullmatch(given) else ("", [given])
    from gossamer.dashboard.app import read_address

    read_address(address)
    return address, seeds


@contextlib.asynccontextmanager
async def dashboard_beside(job: "SupervisedCrawl", address: str | None) -> AsyncIterator[None]:
    """Show the crawl in the browser while the block runs, if there is an address; empty: a free port of this machine."""
    if address is None:
        yield
        return
    from gossamer.engine.unit import meanwhile

    told: list[str] = []
    try:
        async with meanwhile(_shown(job, address, told)):
            yield
    finally:
        if not told and job.directory.exists():
            shown = shlex.quote(str(job.directory))
            tell(f"the crawl ended before its dashboard had begun; `gossamer dashboard {shown}` shows it")


async def _shown(job: "SupervisedCrawl", address: str, told: list[str]) -> None:
    """Let the dashboard show the crawl. `told` gets the line that the dashboard began with, or why it did not."""
    import asyncio

    from gossamer.engine import processes

    while not job.working:
        await asyncio.sleep(LOOK)
    child = await processes.begun(
        "gossamer.dashboard.app", str(job.directory), address, stderr=asyncio.subprocess.DEVNULL
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        line = (await child.stdout.readline()).decode().strip()
        told.append(line)
        if not line or line.startswith("!"):
            tell(f"the dashboard did not start: {line.removeprefix('!') or 'its process ended'}")
            return
        tell(f"dashboard: {line}")
        await child.wait()
        tell("the dashboard has ended, but the crawl goes on; `gossamer dashboard` shows it again")
    finally:
        child.stdin.close()
        try:
            async with asyncio.timeout(GRACE):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()
