"""Crawls of simulated webs in memory, for trap detection: what it sets aside, on hosts of which the truth is known.

Place in the flow: `dev honest-sites` and the tests of trap detection call :func:`crawl`. Pages are made, read and judged by the
code that a crawl uses; only fetching, the queues and the ledger are left out, so 20,000 pages take some eight seconds.
"""

from collections import Counter, deque
from typing import NamedTuple

import msgspec

from gossamer.documents.document import Document
from gossamer.expressions.contract import TaskGate
from gossamer.frontier.termination import LAST, LAST_NEWEST, SHARE
from gossamer.frontier.traps.template import LearntTemplates
from gossamer.frontier.traps.watch import LearntTraps, TrapSheet
from gossamer.parsing.html import HtmlLinks
from gossamer.parsing.links import JoinCache, resolve_links
from gossamer.simweb import SimWeb, render
from gossamer.simweb.site import Conditions, Role
from gossamer.values.outcome import Outcome
from gossamer.values.task import Family, Task
from gossamer.values.url import host_of, path_of
from gossamer.values.visit import Found, Response, Visit, sha1_base32

_HTML = HtmlLinks()


class Spent(NamedTuple):
    """What a crawl has fetched: requests inside traps by host, before and after probes began, and all."""

    trapped: Counter[str]
    probed: Counter[str]
    pages: set[str]
    fetched: int
    aside: Counter[tuple[str, str]]
    """URLs that are set aside at the end, by owner and part."""
    lost: Counter[tuple[str, str]]
    """Those of them that are pages of a host and no trap."""


class Shelves:
    """Tasks that are set aside, by family, as the ledger and the frontier have them."""

    def __init__(self, learnt: LearntTraps) -> None:
        self.learnt = learnt
        self.tasks: dict[Family, list[Task]] = {}
        self.sent: Counter[Family] = Counter()
        self.last: Counter[Family] = Counter()
        self.probes: set[str] = set()

    def takes(self, gate: TaskGate, task: Task) -> bool:
        """Whether a task is set aside."""
        family = self.learnt.place(gate, [task])[0]
        if family is None or task.url in self.probes:
            return False
        self.tasks.setdefault(msgspec.structs.replace(family, why=""), []).append(task)
        return True

    def freed(self) -> list[Task]:
        """Tasks that are set aside no more."""
        families = [msgspec.structs.replace(one, why="") for one in self.learnt.returning()]
        return [task for family in families for task in self.tasks.pop(family, ())]

    def probe(self, *, last: bool) -> list[Task]:
        """A probe of the family whose turn it is, or, at the end, one of each."""
        found = []
        for family, tasks in list(self.tasks.items()):
            if tasks and (not last or self.last[family] < LAST_NEWEST or self.sent[family] < LAST):
                self.sent[family] += 1
                self.last[family] += last
                found.append(tasks.pop())
                self.tasks[family] = self.tasks.pop(family)  # the others come first now
                if not last:
                    break
        self.probes.update(task.url for task in found)
        return found


def crawl(web: SimWeb, *, cut: bool = True, most: int = 20_000, start: str = "") -> tuple[Spent, LearntTraps]:
    """Fetch breadth first, hosts taking turns, as the default crawl does."""
    learnt = LearntTraps(TrapSheet(cut=cut))
    learnt.template = LearntTemplates()
    shelves, cache = Shelves(learnt), JoinCache()
    first = start or f"http://{web.hosts.name(0)}/"
    seen, digests = {first}, dict[str, str]()
    todo: dict[str, deque[Task]] = {host_of(first): deque([Task(first, host_of(first))])}
    trapped, probed, pages = Counter[str](), Counter[str](), set[str]()
    fetched = 0

    def queue(tasks: list[Task]) -> None:
        for task in tasks:
            todo.setdefault(task.host, deque()).append(task)

    while fetched < most:
        queue(shelves.freed())
        queue([] if todo else shelves.probe(last=True))
        if not todo:
            break
        for host in list(todo):
            tasks = todo[host]
            while tasks and shelves.takes("fetch", tasks[0]):
                tasks.popleft()
            if not tasks:
                del todo[host]
                continue
            task = tasks.popleft()
            fetched += 1
            if fetched % SHARE == 0:
                queue(shelves.probe(last=False))
            visit = _fetch(web, task, digests)
            if _is_trap(web, task):
                (probed if task.url in shelves.probes else trapped)[host] += 1
            elif visit.is_page:
                pages.add(task.url)
            if not visit.found:
                learnt.observe(visit)
                continue
            links, _ = resolve_links(visit.found, visit.url, visit.url, cache)
            new = [
                Task(link.url, host_of(link.url), task.depth + 1, task.url, link.relation)
                for link in links
                if link.url not in seen and web.door(host_of(link.url))
            ]
            seen.update(one.url for one in new)
            learnt.observe(msgspec.structs.replace(visit, new=tuple(new)))
            queue([one for one in new if not shelves.takes("schedule", one)])
    kept = [((family.owner, family.part), task) for family, tasks in shelves.tasks.items() for task in tasks]
    lost = Counter(name for name, task in kept if _is_page(web, task))
    return Spent(trapped, probed, pages, fetched, Counter(name for name, _ in kept), lost), learnt


def _is_trap(web: SimWeb, task: Task) -> bool:
    door, target = web.door(task.host), path_of(task.url)
    assert door is not None
    return render.is_in_trap(door.host.trap, target) and (door.host.trap != "soft404" or target.startswith("/missing"))


def _is_page(web: SimWeb, task: Task) -> bool:
    door = web.door(task.host)
    assert door is not None
    return web.locate(door.host, path_of(task.url))[0] in (Role.PAGE, Role.ALIAS)


def _fetch(web: SimWeb, task: Task, digests: dict[str, str]) -> Visit:
    door = web.door(task.host)
    assert door is not None
    answer = web.answer(door, path_of(task.url), Conditions(), 0)
    fields = tuple(
        (name.lower().decode(), value.strip().decode())
        for name, _, value in (line.partition(b":") for line in answer.head.split(b"\r\n")[1:] if line)
    )
    outcome = Outcome.OK if answer.status == 200 else Outcome.CLIENT_ERROR
    visit = Visit(task, Response(outcome, answer.status, headers=fields, body=answer.body))
    location = visit.response.header("location")
    if location:
        return msgspec.structs.replace(visit, found=(Found(location, "redirect"),))
    if not visit.is_page:
        return visit
    digest = sha1_base32(answer.body)
    document = Document(visit)
    found = tuple(_HTML.process(document))
    first = digests.setdefault(digest, task.url)
    return msgspec.structs.replace(
        visit, title=document.title, found=found, digest=digest, duplicate_of=first if first != task.url else ""
    )
