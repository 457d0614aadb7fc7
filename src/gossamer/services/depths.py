"""Shortest depths: what happens when a URL is met again nearer to the seeds (design question 4; row R6, no racing).

Place in the flow: frontier (for seeds) and commit call this inside an open group of the ledger. Without it the first way to
a page would decide its depth, so which pages a crawl with `--depth` reaches would depend on which server was quicker. A page
that was visited at a greater depth is not fetched again: its links were kept, and are announced anew, nearer.
"""

from collections.abc import Callable, Iterable, Sequence

from gossamer.contracts.ledger import Group
from gossamer.model.leading import task_of
from gossamer.model.task import Task

Passing = Callable[[list[Task]], Sequence[Task]]
"""Leaves out the tasks that are not gone after, whoever announces them."""


def announced(tasks: Iterable[Task], group: Group, limit: int, passing: Passing = list) -> list[Task]:
    """Those of `tasks`, and of what lies behind them now, that are new and at most `limit` links from a seed.

    It ends: a page's depth can only become less, so each is announced again at most `limit` times in a whole crawl.

    Args:
        tasks: what was found.
        group: decides what is new.
        limit: links from a seed.
        passing: judges what lies behind `tasks`; these were judged.
    """
    found: list[Task] = []
    todo: Sequence[Task] = [task for task in tasks if task.depth <= limit]
    while todo:
        meeting = group.meet(todo)
        found += meeting.new
        todo = passing([child for task in meeting.nearer for child in behind(task, group) if child.depth <= limit])
    return found


def behind(task: Task, group: Group) -> Iterable[Task]:
    """What a page links to, as tasks; nothing where it was not visited yet, since then its own visit will announce it."""
    for link in group.links_of(task.identity) or ():
        yield task_of(task, *link)
