"""`gossamer store`: what a store has of a crawl that no checkpoint names, and how that goes.

Place in the flow: an owner removes what its checkpoints no longer name, and a successor what its predecessors have left. Something
stays where an owner was killed and none came after it, or where the store could not be reached just then.
"""

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.cli.helping import option
from gossamer.engine.sheet import parse, show_bytes, show_count, show_seconds
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.backup.contract import Store

#: Seconds that an object must be old to be removed. A reader follows a checkpoint for some minutes after another one has taken
#: its place, and an owner ships for some minutes, or hours over a thin line, before its checkpoint names it.
_LEAST = 3_600.0

#: An object that a checkpoint names, or is one, with the epoch of the owner that made it.
_OWNED = re.compile(r"agents/([^/]+)/(?:data|checkpoints)/(\d+)[/-].*")

#: Objects that are removed by one request.
_AT_ONCE = 1_000


def orphans(store: "Store") -> Iterator[str]:
    """The keys of objects that no checkpoint names, and that none will name: their owner has ended, or another one came after it.
    An owner that is silent may be suspended, and publish when it wakes up. Raises CrawlDirectoryError: the store cannot be read."""
    from gossamer.backup.head import AgentInStore

    found = defaultdict[str, list[tuple[int, str]]](list)
    for key in store.list("agents/"):
        if match := _OWNED.fullmatch(key):
            found[match[1]].append((int(match[2]), key))
    for agent, keys in found.items():
        place = AgentInStore(store, agent)
        if (head := place.read()) is None:  # looked at behind the listing: objects published meanwhile have names
            continue
        named = {head.checkpoint, *place.checkpoint().keys}
        yield from (key for epoch, key in keys if key not in named and (epoch < head.epoch or not head.holder))
    yield from store.list("probes/")


@click.command(epilog="Exit status: 0 it is done, 2 wrong usage, 5 the store cannot be reached, or is damaged.")
@click.argument("place", metavar="DIR|STORE")
@option("--sweep", "Remove these objects. Without this option, the command only says how many there are.")
@option(
    "--older-than AGE", "Leave objects that are younger than this; an hour at least.", default="1d", show_default=True
)
def store(place: str, sweep: bool, older_than: str) -> None:
    """List the objects in the store of a crawl that no checkpoint needs, or remove them.

    Objects are left over where an agent was killed, or could not reach the store when it wanted to remove them. The crawl may run
    meanwhile: this command leaves all that a checkpoint names, and all that the present owner of an agent has shipped.

    \b
    gossamer store mycrawl
    gossamer store s3://bucket/example --sweep
    """
    from gossamer.backup.contract import ObjectMissing
    from gossamer.backup.elsewhere import is_store
    from gossamer.backup.head import owned
    from gossamer.backup.opening import open_store, probe
    from gossamer.backup.options import AGENT
    from gossamer.storage.tables.places import crawl_directory

    try:
        age = parse(older_than, "s")
    except ValueError:
        raise UsageError(f"--older-than {older_than}: write a time, as 12h or 7d") from None
    if age < _LEAST:
        raise UsageError(
            f"--older-than {older_than}: an owner may just have shipped it; the least is {show_seconds(_LEAST)}"
        )
    note = None if is_store(place) else owned(crawl_directory(place), AGENT)
    if note is None and not is_store(place):
        raise UsageError(f"the crawl in {Path(place)} has no store")
    where = open_store(place if note is None else note.url)
    now = probe(where)[0] if sweep else time.time()
    old: dict[str, int] = {}
    young = 0
    for key in orphans(where):
        try:
            seen = where.stat(key)
        except ObjectMissing:  # its owner has removed it meanwhile
            continue
        if now - seen.modified < age:
            young += 1
        else:
            old[key] = seen.size
    keys = list(old)
    for start in range(0, len(keys) if sweep else 0, _AT_ONCE):
        where.delete(keys[start : start + _AT_ONCE])
    what = (
        f"{show_count(len(old), 'object')} ({show_bytes(sum(old.values()))}) of {where.name} that no checkpoint names"
    )
    click.echo(
        f"removed {what}"
        if sweep
        else f"{what} can be removed with --sweep"
        if old
        else f"nothing of {where.name} can be removed"
    )
    if young:
        click.echo(
            f"{show_count(young, 'object')} that no checkpoint names are younger than {show_seconds(age)}, and stay"
        )
