"""This machine: the cores and memory that a crawl may use, and how a process that is ours alone is set up.

Place in the flow: `doctor` shows cores and memory, and a crawl asks for them before it lets agents join by themselves. Processes of
ours set event loop, garbage collector and open files here; programs that call us keep theirs, but for the collector while a crawl
of theirs runs.
"""

import contextlib
import gc
import math
import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Runner  # every command imports this module, and few need a loop


#: Bytes of memory that an agent may take, with the process that makes its tables (docs/benchmarks.md).
AGENT_MEMORY = 400_000_000

#: Where Linux says what a group of processes may use: cores as `QUOTA PERIOD`, memory as bytes; `max` where there is no limit.
_GROUP = Path("/sys/fs/cgroup")


def cores(group: Path = _GROUP) -> int:
    """The cores that this process may use, at least 1: by its affinity, and by the quota of its group."""
    try:
        own = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        own = os.cpu_count() or 1
    try:
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        return max(1, min(own, int(quota) // int(period)))
    except (OSError, ValueError):
        return max(1, own)


def free_memory(group: Path = _GROUP) -> int | None:
    found = [free for free in (_of_machine(), _of_group(group)) if free is not None]
    return min(found, default=None)


def room_for_agents(working: int, cores: int, free: int | None, each: int | None = None) -> int:
    """How many agents may work on a machine, with those that do. Pure.

    Args:
        working: agents at work, which have their core and their memory.
        free: bytes of memory, without those that agents have; None where it is not known.
        each: bytes of memory that an agent may take; by default :data:`AGENT_MEMORY`.
    """
    by_memory = math.inf if free is None else working + free // (each or AGENT_MEMORY)
    return int(max(working, min(cores, by_memory)))


def _of_machine() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _of_group(group: Path) -> int | None:
    """The memory that the group may still take; caches that the system can drop count as free."""
    try:
        most = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        rows = (line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        cached = next((int(value) for name, value in rows if name == "inactive_file"), 0)
    except (OSError, ValueError):
        return None
    return max(0, most - used + cached)


#: New containers until the collector looks for cycles. The default (700; 2,000 from Python 3.13 on) looks thousands of times a
#: second while pages are parsed, and finds next to nothing, because what flows holds no cycles: about 10 % of a crawl's CPU
#: (measured over 1,700 documentation pages). 50,000 bounds what a cycle can hold back to some megabytes.
COLLECT_AFTER = 50_000


def loop_factory() -> "Callable[[], AbstractEventLoop] | None":
    """uvloop's, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def coroutine_runner() -> "Runner":
    """A runner of coroutines, with the loop of uvloop where it is installed."""
    from asyncio import Runner

    return Runner(loop_factory=loop_factory())


def tune_collector() -> None:
    """Let the collector look seldom, and never again at what was loaded at the start.

    What is garbage by then is kept, too (2 MB): to look for it takes as much CPU as ten pages.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 20)


#: For each crawl of a program that has the collector look seldom: what it had before the first of them, and None for the others.
_before: list[tuple[int, int, int] | None] = []
_turn = threading.Lock()


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """While a crawl of a program runs, let the collector look as seldom as in a process of ours; then as before.

    A program that has chosen to look more seldom still, or never, keeps that.
    """
    with _turn:
        before = gc.get_threshold()
        is_changed = not _before and 0 < before[0] < COLLECT_AFTER
        _before.append(before if is_changed else None)
        if is_changed:
            gc.set_threshold(COLLECT_AFTER, 20, 20)
    try:
        yield
    finally:
        with _turn:
            last = _before.pop()  # the first stays to the end, whichever crawl ends when
            if (
                last is not None and gc.get_threshold()[0] == COLLECT_AFTER
            ):  # unless the program has said otherwise meanwhile
                gc.set_threshold(*last)


#: Open files that a crawl asks for, where the system's hard limit allows them.
OPEN_FILES = 8_192


def allow_open_files() -> None:
    """Raise the limit of open files as far as we may: many systems begin with 256 or 1,024, and allow more to who asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
