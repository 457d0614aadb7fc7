"""Further processes that serve a simulated web: those that share a server's ports, and one beside a crawler.

Place in the flow: :mod:`gossamer.simweb.server` and programs that crawl start :mod:`gossamer.simweb` here, which is :func:`main`. A
process is told what to serve in one line on its standard input, says its port in one line, and ends when its input does, even if
its parent is killed.
"""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine import processes as python
from gossamer.simweb.spec import ServeOptions, WebSpec

#: Seconds that a process has to end when its input has.
_GRACE = 5.0


class ServerJob(msgspec.Struct, frozen=True):
    """The orders of a further server process."""

    spec: WebSpec
    options: ServeOptions | None
    started: float | None = None
    """The monotonic clock's reading when the web began; None when it begins now."""
    authority: bytes | None = None
    joining: bool = False
    """It shares ports and log of a server that runs already."""


@contextlib.contextmanager
def processes(count: int, job: ServerJob) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start so many server processes, and end them with the context; :func:`port_of` waits until one serves."""
    line = msgspec.json.encode(job, enc_hook=str) + b"\n"
    running: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            process = subprocess.Popen(
                python.command("gossamer.simweb"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=python.environment(),
            )
            running.append(process)
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it died; its missing port tells
                process.stdin.write(line)
                process.stdin.flush()
        yield running
    finally:
        for process in running:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def port_of(process: subprocess.Popen[bytes]) -> int:
    """The port for HTTP of a process that was started; blocks until it serves. Raises OSError: it did not come up."""
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if not said.isdigit():
        raise OSError("the server of the simulated web did not start")
    return int(said)


@contextlib.contextmanager
def beside(spec: WebSpec, options: ServeOptions | None = None) -> Iterator[int]:
    """Serve a web from a process of its own until the context is left; gives its port for HTTP.

    For programs that crawl it themselves: server and crawler then share no interpreter. The process ignores Ctrl-C,
    which is the crawler's to handle, and ends when we do. Raises OSError if it does not come up.
    """
    with processes(1, ServerJob(spec, options)) as [process]:
        yield port_of(process)


def main() -> None:
    """Serve what the standard input says, until it ends."""
    from gossamer.simweb.server import run_loop, serve
    from gossamer.simweb.site import SimWeb

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerJob, dec_hook=lambda _, text: Path(text))

    async def serving() -> None:
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
        own: dict[str, Any] = {"started": job.started, "authority_pem": job.authority, "joining": job.joining}
        async with serve(SimWeb(job.spec), job.options, **own) as served:
            sys.stdout.write(f"{served.port}\n")
            sys.stdout.flush()
            await ended.wait()

    run_loop(serving())
