"""Trap detection against the traps of the simulated web, in memory: traps cost little, and no page is lost to it."""

from collections import Counter, deque
from typing import NamedTuple

import msgspec

from gossamer.model.document import Document
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import host_of, path_of
from gossamer.model.visit import Found, Response, Visit, sha1_base32
from gossamer.services.traps.provider import LearntTraps, TrapSheet
from gossamer.simweb import SimWeb, WebSpec, traps
from gossamer.simweb.hosts import TRAPS
from gossamer.simweb.site import Conditions
from gossamer.stages.links.resolving import JoinCache, resolve_links
from gossamer.stages.process.html import HtmlLinks
from gossamer.stages.url_filter.traps import TrapShapes, TrapShapeSheet


class Spent(NamedTuple):
    """What a crawl has fetched: requests inside traps by host, and all."""

    trapped: Counter[str]
    pages: set[str]
    fetched: int


def crawl(web: SimWeb, *, cut: bool = True, most: int = 20_000, start: str = "") -> tuple[Spent, LearntTraps]:
    """Fetch breadth first, hosts taking turns, as the default crawl does."""
    learnt, shapes = LearntTraps(TrapSheet(cut=cut)), TrapShapes(TrapShapeSheet(cut=cut))
    cache = JoinCache()
    first = start or f"http://{web.hosts.name(0)}/"
    seen, digests = {first}, dict[str, str]()
    todo: dict[str, deque[Task]] = {host_of(first): deque([Task(first, host_of(first))])}
    spent = Spent(Counter(), set(), 0)
    fetched = 0
    while todo and fetched < most:
        for host in list(todo):
            queue = todo[host]
            while queue:
                task = queue.popleft()
                if not any(learnt.judge_tasks("fetch", [task])):
                    break
            else:
                del todo[host]
                continue
            fetched += 1
            visit = _fetch(web, task, digests)
            door = web.door(host)
            assert door is not None
            target = path_of(task.url)
            if traps.belongs(door.host.trap, target) and (door.host.trap != "soft404" or target.startswith("/missing")):
                spent.trapped[host] += 1
            elif visit.is_page:
                spent.pages.add(task.url)
            if not visit.found:
                continue
            links, _ = resolve_links(visit.found, visit.url, visit.url, cache)
            verdicts = shapes.judge(links, task)
            tasks = [
                Task(link.url, host_of(link.url), task.depth + 1, task.url, link.relation)
                for link, verdict in zip(links, verdicts, strict=True)
                if not verdict and link.url not in seen and web.door(host_of(link.url))
            ]
            seen.update(one.url for one in tasks)
            learnt.observe(msgspec.structs.replace(visit, new=tuple(tasks)))
            for one, verdict in zip(tasks, learnt.judge_tasks("schedule", tasks), strict=True):
                if not verdict:
                    todo.setdefault(one.host, deque()).append(one)
    return spent._replace(fetched=fetched), learnt


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
    assert max(spent.trapped.values()) <= 50, "FAULTS 40: detected within fifty pages of a host"
    harmless, _ = crawl(SimWeb(msgspec.structs.replace(TRAPPED, trap_share=0.0)), cut=False)
    assert harmless.pages - spent.pages == set()
    assert all(count > 0 for count in learnt.cuts().values())
    assert set(learnt.cuts()) == {"trap:calendar", "trap:facets", "trap:session-ids", "trap:soft-404"}


def test_without_cuts_traps_are_named_and_everything_is_fetched() -> None:
    spent, learnt = crawl(SimWeb(TRAPPED), cut=False, most=4_000)
    assert max(spent.trapped.values()) > 100
    assert learnt.cuts() == {}
    assert any(name.startswith("found:trap:") for name in learnt.metrics.snapshot())


def test_of_a_usual_web_traps_take_less_than_five_percent() -> None:
    spent, _ = crawl(SimWeb(WebSpec(pages=4_000, hosts=40, size_median=1000, seed=2)))
    assert 0 < sum(spent.trapped.values()) <= 0.05 * spent.fetched
