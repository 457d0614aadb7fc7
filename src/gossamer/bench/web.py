"""A simulated web to measure on, served beside the benchmark: the crawl has a processor to itself where there are two."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from gossamer.bench.peers import pinned
from gossamer.engine import processes
from gossamer.values.errors import UsageError

#: Where a crawl of a simulated web begins: its largest host, which links to all others.
SEED = "http://www.amber0.sim/"


#: Settings of a web that lets a crawl go at its own pace: no rules for one crawler, no traps, and no page that answers 503 with
#: `Retry-After` at first, for which a polite crawl lets the whole host wait.
PLAIN = ("plain_robots=true", "trap_share=0", "flaky_share=0")


@contextmanager
def served(*options: str) -> Iterator[tuple[int, IO[str]]]:
    """Run `gossamer simweb` on a free loopback port, on the last processor where there are several; gives the port, and
    what else it says.

    Raises:
        UsageError: it did not start.
    """
    command = processes.command("gossamer", "simweb", "--port", "0", *options)
    with pinned(max):
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=processes.environment())
    assert server.stdout is not None
    try:
        said = server.stdout.readline()
        found = re.search(r"http://[^/]+:(\d+)/", said)
        if found is None:
            raise UsageError(f"the simulated web did not start: {said.strip() or 'see above'}")
        yield int(found[1]), server.stdout
    finally:
        server.terminate()
        server.communicate()


@contextmanager
def simulated(pages: int, hosts: int, *settings: str, log: Path | None = None) -> Iterator[int]:
    """Serve a simulated web; gives its port. Raises UsageError if it did not start."""
    options = ["--pages", str(pages), "--hosts", str(hosts)]
    options += [word for setting in settings for word in ("--set", setting)]
    options += ["--log", str(log)] if log is not None else []
    with served(*options) as (port, _):
        yield port


def subject(
    how: str,
    directory: Path,
    seeds: Sequence[str] = (SEED,),
    seconds: float | None = None,
    *,
    later: tuple[float, Sequence[str]] = (0.0, ()),
    settings: dict[str, dict[str, Any]] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run the crawl that is measured from inside (:mod:`gossamer.bench.subject`), on a processor of its own.

    Args:
        how: profile or watch.
        directory: of the crawl.
        seeds: where it begins.
        seconds: after which it is broken off.
        later: seconds after which further seeds join it, and these.
        settings: of its units, by their names.
        options: of the crawl.

    Raises:
        UsageError: it failed.
    """
    job = {
        "how": how,
        "seeds": list(seeds),
        "options": {"output": str(directory), **options},
        "seconds": seconds,
        "later": list(later[1]),
        "later_at": later[0],
        "settings": settings or {},
    }
    command = processes.command("gossamer.bench.subject", msgspec.json.encode(job).decode())
    with pinned(min):
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, env=processes.environment())
    if done.returncode:
        raise UsageError(f"the crawl to be measured ended with status {done.returncode}; see above")
    told: dict[str, Any] = msgspec.json.decode(done.stdout.splitlines()[-1])
    return told


def at(port: int) -> tuple[str, ...]:
    """The option `resolve` of a crawl of a simulated web."""
    return (f"*.sim=127.0.0.1:{port}",)
