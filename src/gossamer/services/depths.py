"""Shortest depths: what happens when a URL is met again nearer to the seeds (DESIGN 9.4; MISSION R6, no racing).

Place in the flow: frontier (for seeds) and commit call this inside an open group of the ledger. Without it the first way to
a page would decide its depth, so which pages a crawl with `--depth` reaches would depend on which server was quicker. A page
that was visited at a greater depth is not fetched again: its links were kept, and are announced anew, nearer.
"""

from collections.abc import Iterable

from gossamer.contracts.ledger import Group
from gossamer.model import requisites
from gossamer.model.task import Task
from gossamer.model.url import host_of


def announced(tasks: Iterable[Task], group: Group, limit: int) -> list[Task]:
    """Those of `tasks`, and of what lies behind them now, that are new and at most `limit` links from a seed.

    It ends: a page's depth can only become less, so each is announced again at most `limit` times in a whole crawl.
    """
    found: list[Task] = []
    todo = [task for task in tasks if task.depth <= limit]
    while todo:
        meeting = group.meet(todo)
        found += meeting.new
        todo = [child for task in meeting.nearer for child in _behind(task, group) if child.depth <= limit]
    return found


def child_depth(depth: int, relation: str) -> int:
    """The depth of what a page at `depth` leads to: a redirect's target keeps the depth of its source, parts of a page too."""
    return depth if keeps_depth(relation) else depth + 1


def keeps_depth(relation: str) -> bool:
    """Whether what is found by a relation is no further from the seeds than what it was found on."""
    return relation in requisites.REDIRECTS or relation in requisites.RELATIONS


def _behind(task: Task, group: Group) -> Iterable[Task]:
    """What a page links to, as tasks; nothing where it was not visited yet, since then its own visit will announce it."""
    for url, relation in group.links_of(task.url) or ():
        yield Task(url, host_of(url), child_depth(task.depth, relation), task.url, relation)
