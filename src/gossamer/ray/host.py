"""What Ray runs for one agent: an actor that begins `gossamer agent --join` as a process of its node, and ends with it.

Place in the flow: :mod:`gossamer.ray.cluster` asks Ray for one of these for each agent. Ray puts the folder of the program that
started the crawl first on the import path of its workers, whatever `-P` said there. So the agent is a process of its own, which
begins with the import path of a fresh Python, and this module loads nothing but the standard library. The system ends that process,
and all that it begins, when their parents end: Ray does not where a node or a worker is killed.
"""

import asyncio
import contextlib
import json
import os
import runpy
import secrets
import signal
import sys
import threading
from collections import deque
from pathlib import Path

from gossamer.engine.processes import ENDS_WITH, child, end_with_parent

#: Lines of the process that are kept for the supervisor, which has them only where the process cannot join.
_LINES = 20

#: Seconds between two looks at whether it has ended.
_LOOK = 0.2


class AgentHost:
    """One agent's place on a node."""

    def __init__(self, parent: str, folder: str, to: str, variables: dict[str, str], place: str = "") -> None:
        """Begin the process.

        Args:
            parent: the folder on the node that has the folders of agents.
            folder: the name that its folder has given itself; empty, or unknown on this node: a new one is made.
            to: where the supervisor listens.
            variables: added to its environment.
            place: where the node stands, for an agent that is bound to that.
        """
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._has_ended = False
        self._process: asyncio.subprocess.Process | None = None
        self._folder = _own_folder(Path(parent), folder)
        words = [sys.executable, "-P", "-m", __name__, "agent", "--join", to, "-o", str(self._folder)]
        words += ["--place", place] if place else []
        # Not what Ray has put on this worker's path: the variables of the node, and those of the crawl.
        environment = {**os.environ, **variables, ENDS_WITH: str(os.getpid())}
        threading.Thread(target=lambda: asyncio.run(self._run(words, environment)), daemon=True).start()

    async def _run(self, words: list[str], environment: dict[str, str]) -> None:
        try:
            process = self._process = await child(
                *words, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
            )
            assert process.stderr is not None
            async for line in process.stderr:
                self._lines.append(line.decode("utf-8", "replace").strip()[:1_000])
            await process.wait()
        except (OSError, ValueError) as error:
            self._lines.append(str(error))
        self._has_ended = True

    async def ready(self) -> str:
        """Say that there is room; returns the id of the node."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    async def leave(self) -> None:
        """Let the agent hand back what it has, and end, as its node is to go away."""
        if self._process is not None and not self._has_ended:
            os.kill(self._process.pid, signal.SIGTERM)

    async def ended(self) -> list[str]:
        """Wait until the process has ended; returns its last lines."""
        while not self._has_ended:
            await asyncio.sleep(_LOOK)
        return list(self._lines)


def _own_folder(parent: Path, known: str) -> Path:
    """The folder on this node that calls itself so; else a new one. Others are out of date, and stay as they are."""
    for note in parent.glob("*/state/machine.json"):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if known and json.loads(note.read_bytes()).get("folder") == known:
                return note.parents[1]
    return parent / secrets.token_hex(4)


if __name__ == "__main__":
    end_with_parent()
    runpy.run_module("gossamer", run_name="__main__", alter_sys=True)
