"""How further Python processes are started: the one place that says where their modules come from.

Place in the flow: parsers, makers of tables, followers, agents and the processes of a wiring are started by :func:`begun`.

Python puts the current folder first on the import path of `python -m` and `python -c`, and a script's folder first on that
of the script. A crawl is typed in a folder of downloads as well as in any other, and a `msgspec.py` that lies there must not
become ours. So a process that is started here looks for modules where its parent does, with two differences: nothing of the
folder where it is started is looked at while the interpreter starts, and what Python or the person put on the path as the
current folder or the script's comes last, behind the standard library and all that is installed.

This file is also the program that such a process runs first: `python -P processes.py MODULE [ARGUMENT...]`. So it stands on the
standard library alone, since the import path that it sets is where everything else is found.
"""

import contextlib
import os
import resource
import runpy
import signal
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, TypedDict, Unpack

if TYPE_CHECKING:
    from asyncio.subprocess import Process

#: The folder that holds this package.
_SOURCE = str(Path(__file__).resolve().parents[2])

#: Carries the import path to the further process, which takes it out of its environment again.
PATH_VARIABLE = "GOSSAMER_IMPORT_PATH"

#: Set in the environment of a process that is to end with the one that began it; all that it begins end with it, too. It has the
#: number of that other process.
ENDS_WITH = "GOSSAMER_ENDS_WITH"

#: The request of `prctl` for a signal at the death of the parent (linux/prctl.h).
_PR_SET_PDEATHSIG = 1


def is_alive(number: int) -> bool:
    """Whether there is a process of this number on this machine, of any user. One in another container is none for us."""
    try:
        os.kill(number, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def is_suspended(child: int) -> bool:
    """Whether a child of this process was stopped by a signal, and has not gone on; False where the system does not tell."""
    if not hasattr(os, "waitid"):  # macOS, before Python 3.13
        return False
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    return False


def resident() -> int:
    """Bytes of this process in memory; where the system does not tell, the most there ever were."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[1]
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024)
    return int(pages) * resource.getpagesize()


def resident_with_children() -> int:
    """Bytes in memory of this process and of all that come of it, as far as the system tells of them (Linux does); memory that they
    share counts for each."""
    total, waiting = resident(), [str(os.getpid())]
    while waiting:
        for tasks in Path("/proc", waiting.pop()).glob("task/*/children"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                for child in tasks.read_text().split():
                    waiting.append(child)
                    total += int(Path("/proc", child, "statm").read_bytes().split()[1]) * resource.getpagesize()
    return total


def give_back_memory() -> None:
    """Give the system the memory that was freed and that the allocator keeps, where it can be told to (glibc)."""
    import ctypes  # few processes need it

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of ours in a process of its own; it needs :func:`environment` beside it."""
    return [sys.executable, "-P", __file__, module, *arguments]


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
    if ENDS_WITH in variables:
        variables[ENDS_WITH] = str(os.getpid())
    return variables


def import_path(*, own: bool = False) -> list[str]:
    """Absolute folders in which a further process looks for modules, in order.

    Args:
        own: the current folder belongs to it, at the end, where the parent has it as the empty entry of its own path.
    """
    try:
        current = str(Path.cwd())
    except FileNotFoundError:
        current = os.sep  # it was removed: nothing can be found there
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    last = {current, str(Path(script).resolve().parent) if script else None}
    entries = [os.path.join(current, entry) for entry in sys.path if entry]  # noqa: PTH118  # Path would rewrite them
    path = [entry for entry in entries if os.path.normpath(entry) not in last]
    path += [entry for entry in entries if os.path.normpath(entry) in last]
    if own and "" in sys.path:
        path.append(current)
    return list(dict.fromkeys([*path, _SOURCE]))


# -- starting one, for an event loop


class ChildStreams(TypedDict, total=False):
    """Streams and open files of a further process; the first three are pipes unless they are named."""

    stdin: int | None
    """:data:`subprocess.PIPE`, ``DEVNULL``, or None for that of this process."""
    stdout: int | None
    stderr: int | None
    cwd: str | None
    """Where it begins."""
    pass_fds: tuple[int, ...]
    """Numbers of open files that it gets beside these three."""
    limit: int
    """Bytes that a reader of its output keeps while it waits for the end of a line."""


async def begun(module: str, *arguments: str, own: bool = False, **streams: Unpack[ChildStreams]) -> "Process":
    """Start a module of ours, by its full name and as a program; see :func:`child`, and :func:`environment` for `own`."""
    return await child(*command(module, *arguments), env=environment(own=own), **streams)


async def child(*words: str, env: dict[str, str] | None = None, **streams: Unpack[ChildStreams]) -> "Process":
    """Start a program by its command line. Ctrl-C in the terminal does not reach it: the caller has to end it. Raises OSError:
    the system starts no process."""
    import asyncio  # 30 ms that a further process does not need before its module runs

    streams = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, **streams}
    return await asyncio.create_subprocess_exec(*words, env=env, start_new_session=True, **streams)


def kill(child: "Process") -> None:
    """End a child, whatever it does. Safe to call at any time, also again.

    `Process.kill` looks first whether the child has ended, and so takes its status from the event loop, which then tells 255.
    """
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)


def told_death(code: int) -> str:
    """The end of a process by its exit status, or by the signal below zero, in words."""
    return f"killed by signal {-code}" if code < 0 else f"exit status {code}"


# -- the first lines of such a process


def end_with_parent() -> None:
    """Let the system kill this process when the one that :data:`ENDS_WITH` names ends, more exactly the thread that began it. Only
    Linux does; elsewhere the process goes on."""
    if sys.platform != "linux":
        return
    import ctypes  # few processes end so

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(os.environ[ENDS_WITH]):  # it ended before that
        os.kill(os.getpid(), signal.SIGKILL)


class StandardNames:
    """Finds modules of the standard library where they belong, and nowhere else.

    Some are not there on every system, as `nt` and `_winapi`, and Python's own modules try to import them. A file of that name in
    the person's folder, which may stand at the end of the path, must not become one of them.
    """

    def __init__(self, path: list[str]) -> None:
        self._path = path

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if path is not None or name not in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(name, self._path)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec


if __name__ == "__main__":
    sys.meta_path.insert(sys.meta_path.index(PathFinder), StandardNames(list(sys.path)))
    sys.path[:] = os.environ.pop(PATH_VARIABLE).split(os.pathsep)
    if ENDS_WITH in os.environ:
        end_with_parent()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
