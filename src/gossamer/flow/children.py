"""Starts processes of ours that work beside this one, for an event loop.

Place in the flow: parsers, makers of tables, followers, agents, processes of a wiring, and whatever else a crawl starts and
waits for. :mod:`gossamer.flow.python` says where their modules come from.
"""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Collection

from gossamer.flow import python

#: Bytes of one line that a child's streams keep, as asyncio has it.
_LINE = 1 << 16


async def begun(
    module: str,
    *arguments: str,
    stdin: int | None = PIPE,
    stdout: int | None = PIPE,
    stderr: int | None = PIPE,
    own: bool = False,
    shared: Collection[int] = (),
    longest_line: int = _LINE,
) -> Process:
    """Start a module of ours in a process of its own. Ctrl-C in the terminal does not reach it: whoever starts it has to end it.

    Args:
        module: its full name; it is run as a program.
        *arguments: of the program.
        stdin: :data:`asyncio.subprocess.PIPE`, ``DEVNULL``, or None for that of this process; `stdout` and `stderr` likewise.
        own: it may need modules of the person's own.
        shared: numbers of open files that it gets beside these three.
        longest_line: bytes that a reader of its output keeps while it waits for the end of a line.

    Raises:
        OSError: the system starts no process.
    """
    return await asyncio.create_subprocess_exec(
        *python.command(module, *arguments),
        env=python.environment(own=own),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=tuple(shared),
        limit=longest_line,
        start_new_session=True,
    )
