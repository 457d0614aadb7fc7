"""Steps of the marshaler as plain code: what is a URL to be fetched, which ones come twice, and what a task is called.

Place in the flow: :mod:`gossamer.stages.marshaling.component` takes them in order, with its providers between them.
"""

from collections.abc import Callable, Collection, Iterable

import msgspec

from gossamer.contracts.marshaling import RecentUrls
from gossamer.model.digest_claims import CLAIM
from gossamer.model.errors import UnreadableUrl, UrlTooLong
from gossamer.model.judged import fault_beside_url
from gossamer.model.orders import ORDER
from gossamer.model.task import Task
from gossamer.model.url import canonical, host_of, is_machine, plain_host, scheme_of, scheme_rule, with_host


def names_page(task: Task) -> bool:
    """Whether a task has the URL of a page: orders of processors and claims of documents travel as tasks, and pass as they are."""
    return task.relation not in (ORDER, CLAIM)


def validated(task: Task, schemes: Collection[str]) -> Task | str:
    """Step 1: the task in its canonical form, or the rule by which it is refused.

    What names no page passes as it is.
    """
    if fault_beside_url(task):
        return "unfit"
    if not names_page(task):
        return task
    url = task.url
    host = plain_host(url)
    if not host:
        try:
            url = canonical(url)
        except UrlTooLong:
            return "too_long"
        except UnreadableUrl:
            return "not_a_url"
        host = host_of(url)
    if scheme_of(url) not in schemes:
        return scheme_rule(url)
    if not is_machine(host):
        return "no_host"
    if url == task.url and host == task.host:
        return task
    return msgspec.structs.replace(task, url=url, host=host)


def not_recent(tasks: Iterable[Task], recent: RecentUrls) -> list[Task]:
    """Step 2: the tasks that were not passed on a short time ago, each once, those of one depth together.

    What names no page is never held back.
    """
    by_depth: dict[int, dict[str, Task]] = {}
    rest: list[Task] = []
    for task in tasks:
        if not names_page(task):
            rest.append(task)
        else:
            by_depth.setdefault(task.depth, {}).setdefault(task.identity, task)
    nearer: set[str] = set()
    for depth in sorted(by_depth):
        those = by_depth[depth]
        asked = [identity for identity in those if identity not in nearer] if nearer else list(those)
        missed = recent.misses(asked, depth)
        rest += [those[identity] for identity in missed]
        if len(by_depth) > 1:
            nearer.update(missed)
    return rest


def named(task: Task, name_of: Callable[[str], str]) -> Task:
    """Step 3: the task under the canonical name of its host."""
    name = name_of(task.host)
    if name == task.host or not names_page(task):
        return task
    return msgspec.structs.replace(task, url=with_host(task.url, name), host=name)


def refused(tasks: Iterable[Task], verdicts: Iterable[str]) -> list[str]:
    """Step 4: for each task the rule of the domain constraints that refuses it, or nothing. They speak of pages alone."""
    return [verdict if names_page(task) else "" for task, verdict in zip(tasks, verdicts, strict=True)]
