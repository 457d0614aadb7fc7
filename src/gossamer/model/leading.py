"""From a link to a task: how far from the seeds the task is, and how many redirects in a row led to it.

Place in the flow: url-seen, the commit and :mod:`gossamer.services.depths` all make tasks of links here, so that a limit of depth
or of redirects means the same whichever of them made the task.
"""

from gossamer.model.requesting import Requested
from gossamer.model.requisites import REDIRECTS, RELATIONS
from gossamer.model.task import Task
from gossamer.model.url import host_of


def task_of(source: Task, url: str, relation: str, request: Requested | None = None) -> Task:
    """The task for a link that was found on `source` by this relation; `url` is canonical."""
    hops = source.hops + 1 if relation in REDIRECTS else 0
    depth = child_depth(source.depth, relation)
    return Task(url, host_of(url), depth, source.url, relation, hops=hops, request=request)


def child_depth(depth: int, relation: str) -> int:
    """The depth of what a page at `depth` leads to: a redirect's target keeps the depth of its source, parts of a page too."""
    return depth if keeps_depth(relation) else depth + 1


def parent_depth(depth: int, relation: str) -> int:
    """The depth of the page that leads to what is at `depth`: the other way round."""
    return depth if keeps_depth(relation) else max(0, depth - 1)


def keeps_depth(relation: str) -> bool:
    """Whether what is found by a relation is no further from the seeds than what it was found on."""
    return relation in REDIRECTS or relation in RELATIONS
