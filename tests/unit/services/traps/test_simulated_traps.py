"""Trap detection against the traps of the simulated web, in memory: traps cost little, and no page is lost to it."""

from collections import Counter, deque
from typing import NamedTuple

import msgspec

from gossamer.contracts.filtering import TaskGate
from gossamer.model.aside import Family
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import host_of, path_of
from gossamer.model.visit import Found, Response, Visit, sha1_base32
from gossamer.reading.document import Document
from gossamer.services.template import LearntTemplates
from gossamer.services.traps.provider import LearntTraps, TrapSheet
from gossamer.simweb import SimWeb, WebSpec, traps
from gossamer.simweb.hosts import TRAPS
from gossamer.simweb.site import Conditions
from gossamer.stages.frontier.probing import LAST, SHARE
from gossamer.stages.links.resolving import JoinCache, resolve_links
from gossamer.stages.process.html import HtmlLinks


class Spent(NamedTuple):
    """What a crawl has fetched: requests inside traps by host, before and after probes began, and all."""

    trapped: Counter[str]
    probed: Counter[str]
    pages: set[str]
    fetched: int
    aside: int


class Shelves:
    """Tasks that are set aside, by family, as the ledger and the frontier have them."""

    def __init__(self, learnt: LearntTraps) -> None:
        self.learnt = learnt
        self.tasks: dict[Family, list[Task]] = {}
        self.last: Counter[Family] = Counter()
        self.probes: set[str] = set()

    def takes(self, gate: TaskGate, task: Task) -> bool:
        family = self.learnt.place(gate, [task])[0]
        if family is None or task.url in self.probes:
            return False
        self.tasks.setdefault(msgspec.structs.replace(family, why=""), []).append(task)
        return True

    def freed(self) -> list[Task]:
        families = [msgspec.structs.replace(one, why="") for one in self.learnt.returning()]
        return [task for family in families for task in self.tasks.pop(family, ())]

    def probe(self, *, last: bool) -> list[Task]:
        found = []
        for family, tasks in self.tasks.items():
            if tasks and (not last or self.last[family] < LAST):
                self.last[family] += last
                found.append(tasks.pop())
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
    spent = Spent(Counter(), Counter(), set(), 0, 0)
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
            door = web.door(host)
            assert door is not None
            target = path_of(task.url)
            if traps.belongs(door.host.trap, target) and (door.host.trap != "soft404" or target.startswith("/missing")):
                (spent.probed if task.url in shelves.probes else spent.trapped)[host] += 1
            elif visit.is_page:
                spent.pages.add(task.url)
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
    return spent._replace(fetched=fetched, aside=sum(map(len, shelves.tasks.values()))), learnt


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
    found = tuple(one for one in HTML.process(document) if isinstance(one, Found))
    first = digests.setdefault(digest, task.url)
    return msgspec.structs.replace(
        visit, title=document.title, found=found, digest=digest, duplicate_of=first if first != task.url else ""
    )


HTML = HtmlLinks()


#: Small pages that never fail for a while, on hosts of which every second has a trap.
TRAPPED = WebSpec(pages=1500, hosts=40, trap_share=0.5, size_median=1000, flaky_share=0.0, seed=5)


def test_traps_cost_little_and_no_page_is_lost_to_their_detection() -> None:
    web = SimWeb(TRAPPED)
    spent, learnt = crawl(web)
    kinds = {web.hosts.host(rank).name: web.hosts.host(rank).trap for rank in range(len(web.hosts))}
    assert {kinds[host] for host in spent.trapped} == set(TRAPS), "every kind of trap was met"
    assert max(spent.trapped.values()) <= 50, "fault 40: set aside within fifty pages of a host"
    harmless, _ = crawl(SimWeb(msgspec.structs.replace(TRAPPED, trap_share=0.0)), cut=False)
    assert harmless.pages - spent.pages == set()
    assert spent.aside > 100
    assert set(learnt.set_aside()) >= {"trap:calendar", "trap:facets", "trap:session-ids"}


def test_without_setting_aside_traps_are_named_and_everything_is_fetched() -> None:
    spent, learnt = crawl(SimWeb(TRAPPED), cut=False, most=4_000)
    assert max(spent.trapped.values()) > 100
    assert spent.aside == 0 and learnt.set_aside() == {}
    assert any(name.startswith("found:trap:") for name in learnt.metrics.snapshot())


def test_of_a_usual_web_probes_take_one_request_in_a_hundred_until_nothing_else_is_left() -> None:
    web = SimWeb(WebSpec(pages=4_000, hosts=40, size_median=1000, seed=2))
    everything, _ = crawl(web)
    early, _ = crawl(web, most=3_000)
    assert 0 < sum(early.probed.values()) <= 0.01 * early.fetched
    assert 0 < max(everything.trapped.values()) <= 50
    assert sum(everything.trapped.values()) <= 0.05 * everything.fetched
