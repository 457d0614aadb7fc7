"""What an agent has sent by files to one whose directory is lost: owed again, out of the links of its own pages.

Place in the flow: `gossamer exchange DIR --lost N` asks here. What the lost agent had confirmed was forgotten; that it was met is
known by the seen set, which has no URLs, so these come from the tables.
"""

import asyncio
from itertools import islice
from pathlib import Path

from gossamer.contracts.seen import SeenSet
from gossamer.model.agents import agent_name
from gossamer.model.errors import UsageError
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.stores.exchange.files import FileOutbox

#: Links that are looked at in one group.
_AT_ONCE = 2_000


async def owe_to_lost(directory: Path, outbox: FileOutbox, seen: SeenSet, number: int) -> int:
    """Owe an agent all again that it was sent, as far as the tables have the links; returns how many URLs are owed to it.

    Args:
        directory: of a crawl at rest.
        outbox: of the crawl.
        seen: says what the crawl has met, and so has sent.
        number: of the agent, counted from 1.

    Raises:
        UsageError: there is no such agent, it is this one, or the crawl keeps no table of links.
    """
    from gossamer.assembly.agency.lost import LINKS_BY_DEPTH
    from gossamer.query.database import Database  # who has lost nothing pays for nothing of this

    lost = agent_name(number)
    if lost not in outbox.key.names or lost == outbox.sheet.agent:
        raise UsageError(f"--lost {number}: the other agents of this exchange are {', '.join(_others(outbox))}")
    await outbox.owe_again()
    count = 0
    with Database(directory) as database:
        if not {"links", "pages"} <= set(database.tables):
            raise UsageError("this crawl keeps no table of links, so nobody knows what it has sent to the lost agent")
        rows = iter(database.ask(LINKS_BY_DEPTH))
        while part := list(islice(rows, _AT_ONCE)):
            tasks = [Task(target, host_of(target), depth, source, relation) for target, depth, source, relation in part]
            theirs = {task.url: task for task in tasks if outbox.designation.owner(task.host) == lost}
            for new in seen.unseen(list(theirs)):
                del theirs[new]
            count += outbox.owe_known(list(theirs.values()))
            await asyncio.sleep(0)
    return count


def _others(outbox: FileOutbox) -> list[str]:
    return [name for name in outbox.key.names if name != outbox.sheet.agent]
