"""How further Python processes are started: the one place that says where their modules come from.

Place in the flow: parsers, makers of tables, followers, agents and the processes of a wiring are started by :func:`begun`.

Python puts the current folder first on the import path of `python -m` and `python -c`, and a script's folder first on that
of the script. A crawl is typed in a folder of downloads as well as in any other, and a `msgspec.py` that lies there must not
become ours. So a process that is started here looks for modules where its parent does, with two differences: nothing of the
folder where it is started is looked at while the interpreter starts, and what Python or the person put on the path as the
current folder or the script's comes last, behind the standard library and all that is installed.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Collection
from pathlib import Path

#: Runs a module on the path that it is given; a file, not a module, so that no path is needed to find it.
_LAUNCHED = Path(__file__).with_name("launched.py")

#: The folder that holds this package.
_SOURCE = str(Path(__file__).resolve().parents[2])

#: Carries the import path to :mod:`gossamer.engine.launched`, which takes it out of the environment again.
PATH_VARIABLE = "GOSSAMER_IMPORT_PATH"


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of ours in a process of its own; it needs :func:`environment` beside it."""
    return [sys.executable, "-P", str(_LAUNCHED), module, *arguments]


def environment(*, own: bool = False) -> dict[str, str]:
    """The environment variables of such a process.

    Args:
        own: the process may need modules of the person's own, which an interactive session finds in its current folder.
    """
    variables = dict(os.environ)
    # An empty entry, as `PYTHONPATH=/lib:$PYTHONPATH` leaves one, would mean the current folder.
    if entries := [entry for entry in variables.pop("PYTHONPATH", "").split(os.pathsep) if entry]:
        variables["PYTHONPATH"] = os.pathsep.join(entries)
    variables[PATH_VARIABLE] = os.pathsep.join(import_path(own=own))
    return variables


def import_path(*, own: bool = False) -> list[str]:
    """Absolute folders in which a further process looks for modules, in order.

    Args:
        own: the current folder belongs to it, at the end, where the parent has it as the empty entry of its own path.
    """
    current = _current()
    last = {current, _script_folder()}
    entries = [os.path.join(current, entry) for entry in sys.path if entry]  # noqa: PTH118  # Path would rewrite them
    path = [entry for entry in entries if os.path.normpath(entry) not in last]
    path += [entry for entry in entries if os.path.normpath(entry) in last]
    if own and "" in sys.path:
        path.append(current)
    return list(dict.fromkeys([*path, _SOURCE]))


def _current() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return os.sep  # it was removed: nothing can be found there


def _script_folder() -> str | None:
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return str(Path(script).resolve().parent) if script else None


# -- starting one, for an event loop

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
    """Start a module of ours in a process of its own. Ctrl-C in the terminal does not reach it: the caller has to end it.

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
        *command(module, *arguments),
        env=environment(own=own),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=tuple(shared),
        limit=longest_line,
        start_new_session=True,
    )
