"""Which parts of a host a task belongs to, by its URL and by what is known of the host.

Place in the flow: `watch` asks here for each task that is queued, handed out or looked at; so does whoever goes by a person's word.
"""

from collections.abc import Iterator, Sequence

from gossamer.model.domains import registered_domain
from gossamer.model.task import Task
from gossamer.services.traps.families import parts_of
from gossamer.services.traps.memory import Memory, PartState, TrapHost
from gossamer.services.traps.shapes import shape_of

#: Pages of a part that lead to new URLs of it before its pages are looked at: most parts of most hosts have fewer.
GRACE = 8

#: Pages of a host after which it is none of those that a domain invents.
ESTABLISHED = 4

#: How the names of traps begin.
FOUND = "trap:"

#: The part of a domain that is all hosts which it may invent.
WILDCARD = "**"


def belongs(task: Task, name: str, skipped: int, host: TrapHost) -> bool:
    """Whether a task is of the part of this name; `skipped` directories of its URL are not masked."""
    if name == WILDCARD:
        return True
    wide, narrow = parts_of(task.url, skipped)
    if name in (narrow, wide):
        return True
    if name.endswith("/***"):
        return is_young(host, wide)
    return FOUND + name == shape_of(task.url, task.source)


def is_young(host: TrapHost, wide: str) -> bool:
    """Whether a directory is too small, or too new, to be judged by itself."""
    part = host.parts.get(wide)
    return part is None or (part.state is PartState.FRESH and part.feeding < GRACE)


def is_watched(host: TrapHost, names: Sequence[str]) -> bool:
    """Whether the pages of one of these parts are being looked at."""
    return any(part is not None and part.window for part in map(host.parts.get, names))


def rest_of(host: TrapHost) -> str:
    """The name of the part that is everything in small directories."""
    return f"{host.base if len(host.base) < 100 else '/'}***" if host.base.endswith("/") else "/***"


def wild_owner(host: str) -> str:
    """The owner of the part that is all hosts of this one's registered domain."""
    return f"*.{registered_domain(host)}"


def suspicions_of(task: Task, memory: Memory) -> Iterator[tuple[str, TrapHost, str]]:
    """Owner, host and name of each suspected part that a task belongs to."""
    host = memory.look(task.host)
    if host is not None:
        # The widest first: a directory that is suspected as a whole is one family.
        for name in host.suspects:
            if belongs(task, name, host.parts[name].skipped, host):
                yield task.host, host, name
    if host is None or host.pages < ESTABLISHED:
        owner = wild_owner(task.host)
        wild = memory.look(owner)
        if wild is not None and WILDCARD in wild.suspects and owner[2:] != task.host:
            yield owner, wild, WILDCARD
