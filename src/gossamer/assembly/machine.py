"""What this machine lets a crawl use: cores and memory.

Place in the flow: `doctor` tells it, and a crawl asks before it lets agents join by themselves.
"""

import math
import os
from pathlib import Path

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
    """Bytes of memory that programs may still take; None on a system that does not say so."""
    found = [free for free in (_of_machine(), _of_group(group)) if free is not None]
    return min(found, default=None)


def room_for_agents(working: int, cores: int, free: int | None) -> int:
    """How many agents may work on a machine, with those that do. Pure.

    Args:
        working: agents at work, which have their core and their memory.
        cores: of the machine.
        free: bytes of memory, without those that agents have; None where nobody knows.
    """
    by_memory = math.inf if free is None else working + free // AGENT_MEMORY
    return int(max(working, min(cores, by_memory)))


def _of_machine() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _of_group(group: Path) -> int | None:
    """What the group may still take; caches that the system can drop count as free."""
    try:
        most = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        rows = (line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        cached = next((int(value) for name, value in rows if name == "inactive_file"), 0)
    except (OSError, ValueError):
        return None
    return max(0, most - used + cached)
