"""A further process that serves a simulated web, as :mod:`gossamer.simweb.beside` starts it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from gossamer.simweb.beside import ServerJob
from gossamer.simweb.server import run_loop, serve
from gossamer.simweb.site import SimWeb


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerJob, dec_hook=_path)
    run_loop(_serve(job))
    return 0


def _path(kind: type, text: Any) -> Any:
    if kind is not Path:
        raise NotImplementedError(kind)
    return Path(text)


async def _serve(job: ServerJob) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    serving = serve(
        SimWeb(job.spec), job.options, started=job.started, authority_pem=job.authority, joining=job.joining
    )
    async with serving as served:
        sys.stdout.write(f"{served.port}\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    sys.exit(main())
