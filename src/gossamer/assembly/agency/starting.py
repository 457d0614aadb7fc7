"""Starts the processes of a crawl; those that are needed soon are started ahead, load the program, and wait for a word.

Place in the flow: each :mod:`supervised` process is started here. While agents come to rest so that domains can change hands, the
crawl prepares the next ones: loading the program takes longer than the change itself, and nothing is fetched meanwhile.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from gossamer.flow import children

#: The word that lets a process begin. Without it, it ends as soon as its supervisor does.
WORD = b"\n"


class Starter:
    """Starts processes by the names of agents and masters."""

    def __init__(self, folder: Path) -> None:
        """`folder` is where they meet."""
        self._folder = folder
        self._prepared: dict[str, asyncio.Task[asyncio.subprocess.Process]] = {}

    def __repr__(self) -> str:
        return f"<Starter: {len(self._prepared)} prepared>"

    async def start(self, name: str) -> asyncio.subprocess.Process:
        """A process that begins now: the one that was prepared, or a new one. Raises OSError."""
        process = await self._waiting(name) or await self._started(name)
        assert process.stdin is not None
        process.stdin.write(WORD)
        return process

    def prepare(self, names: Iterable[str]) -> None:
        """Let processes load the program that are to begin soon."""
        for name in names:
            if name not in self._prepared:
                self._prepared[name] = asyncio.create_task(self._started(name))

    async def close(self) -> None:
        """End those that wait and were not needed."""
        for name in list(self._prepared):
            if process := await self._waiting(name):
                process.kill()
                await process.wait()

    async def _waiting(self, name: str) -> asyncio.subprocess.Process | None:
        """The process that was prepared, once; None where there is none, or it has ended."""
        if (task := self._prepared.pop(name, None)) is None:
            return None
        try:
            process = await task
        except OSError:
            return None  # who needs it tries again, and says why it fails
        return process if process.returncode is None else None

    async def _started(self, name: str) -> asyncio.subprocess.Process:
        return await children.begun(
            "gossamer.assembly.agency.process", str(self._folder), name, stdout=asyncio.subprocess.DEVNULL
        )
