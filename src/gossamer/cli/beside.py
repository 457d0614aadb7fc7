"""The dashboard beside a crawl (`--dashboard`): a process of its own, which the crawl starts, does not notice, and ends.

Place in the flow: :mod:`gossamer.cli.crawl` enters :func:`dashboard_beside` around the run. The crawl waits for nothing here: when
the dashboard cannot start, or dies, a line says so.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from gossamer.cli.telling import tell
from gossamer.flow import children

if TYPE_CHECKING:
    from gossamer.cli.crawl import AnyCrawl

#: Seconds between two looks whether the crawl has begun, and that the dashboard has to end.
LOOK, GRACE = 0.1, 3.0

#: What an address to listen at looks like. Anything else after the option is a seed: `--dashboard https://example.org/`.
ADDRESS = re.compile(r"([\w.-]*:|\[[0-9a-f:]+\]:)?\d+", re.ASCII | re.IGNORECASE)


def parted(given: str | None) -> tuple[str | None, list[str]]:
    """What stood behind the option, as the address of the dashboard (None: there is to be none), and seeds."""
    if not given or ADDRESS.fullmatch(given):
        return given, []
    return "", [given]


def check_dashboard(address: str | None) -> None:
    """Refuse, before a crawl begins, a dashboard that cannot be.

    Raises:
        UsageError: its libraries are missing, or the address does not do.
    """
    if address is not None:
        from gossamer.dashboard.listening import check_installed, read_address

        check_installed()
        read_address(address)


@contextlib.asynccontextmanager
async def dashboard_beside(job: "AnyCrawl", address: str | None) -> AsyncIterator[None]:
    """Show the crawl in the browser while the block runs, if there is an address; empty: a free port of this machine."""
    if address is None:
        yield
        return
    task = asyncio.create_task(_shown(job, address))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _shown(job: "AnyCrawl", address: str) -> None:
    while not job.working:
        await asyncio.sleep(LOOK)
    child = await children.begun("gossamer.dashboard", str(job.directory), address, stderr=asyncio.subprocess.DEVNULL)
    assert child.stdin is not None and child.stdout is not None
    try:
        line = (await child.stdout.readline()).decode().strip()
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
