"""Random walks through the web: two parts and a wiring for Gossamer. See README.md."""

import random
import sys
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.crawls.compiling import shipped
from gossamer.engine.component import AsynchronousFilter
from gossamer.engine.ends import In, Out
from gossamer.engine.sheet import NoSettings, setting
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ComponentPlan, ProviderPlan, Wiring, to_toml
from gossamer.frontier.frontier import SeedsSheet
from gossamer.values.outcome import TRANSIENT
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import Record, Visit


class WalkersSheet(SeedsSheet, frozen=True):
    """Who walks how far."""

    walkers: Annotated[int, setting("Walks at once.", restart="walks are under way", ge=1)] = 1
    steps: Annotated[int, setting("Pages visited by all walks together.", ge=1)] = 1_000
    jump: Annotated[float, setting("Odds of a jump to a seed instead of a link.", ge=0, le=1)] = 0.15
    seed: Annotated[int, setting("Of the choices.", restart="walks are under way")] = 1
    output: Annotated[str, setting("Where the visits are counted at the end.")] = "walk.json"


class Walkers(AsynchronousFilter[WalkersSheet]):
    """Sends a task for each walk; when its page has come, the next."""

    records: In[Record]
    outbox: Out[Task]

    async def start(self) -> None:
        """All walks begin at seeds."""
        self._draw = random.Random(self.sheet.seed)
        self._seeds = [canonical(url) for url in self.sheet.urls]
        self._visits: Counter[str] = Counter()
        self._began = 0
        self._ready: deque[Task] = deque()
        for number in range(min(self.sheet.walkers, self.sheet.steps)):
            self._step(self._seeds[number % len(self._seeds)], "jump", "")
        self.metrics.gauge("steps", self._visits.total)
        self.signal("outbox")

    async def stop(self) -> None:
        """Keep what was counted."""
        data = msgspec.json.encode(dict(self._visits.most_common()))
        Path(self.sheet.output).write_bytes(msgspec.json.format(data))

    def drain(self) -> None:
        """No more steps."""
        self.finish()

    def on_records(self, record: Record) -> None:
        """A step is done. Errands for robots.txt and tries that will be repeated are none."""
        visit = record.visit
        if visit.is_robots or visit.response.outcome in TRANSIENT:
            return
        self._visits[visit.url] += 1
        if self._began < self.sheet.steps:
            self._step(*self._next(visit), visit.url)
            self.signal("outbox")
        elif self._visits.total() == self._began:
            self.finish()

    def take_outbox(self, free: int) -> list[Task]:
        """Steps that begin."""
        return [self._ready.popleft() for _ in range(min(free, len(self._ready)))]

    def _next(self, visit: Visit) -> tuple[str, str]:
        links = visit.links
        is_redirect = bool(links) and links[0].relation == "redirect"
        if not links or (not is_redirect and self._draw.random() < self.sheet.jump):
            return self._draw.choice(self._seeds), "jump"
        link = self._draw.choice(links)
        return link.url, link.relation

    def _step(self, url: str, relation: str, source: str) -> None:
        self._began += 1
        self._ready.append(Task(url, host_of(url), source=source, relation=relation))


class NeverSeen(Provider[NoSettings]):
    """Every URL may be visited again. Contract: `seen.SeenSet`, but for its third promise."""

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        """All of them."""
        return list(urls)

    def offer(self, urls: Sequence[str]) -> list[str]:
        """All of them."""
        return list(urls)


def wiring() -> Wiring:
    """The shipped wiring without URL-seen and content-seen, walkers in the place of the seeds."""
    plain = shipped("default")
    components = dict(plain.components)
    connectors = dict(plain.connectors)
    for name in ("url-seen", "content-seen"):
        ports = components.pop(name).ports
        _join(components, ports["inbox"], ports["outbox"])
        del connectors[ports["inbox"]]
    sends, watches = components["seeds"].ports["outbox"], components.pop("tally").ports["records"]
    components["seeds"] = ComponentPlan(use="walkers", ports={"outbox": sends, "records": watches})
    providers = {name: plan for name, plan in plain.providers.items() if name != "contents"}
    return msgspec.structs.replace(
        plain,
        description="Random walks",
        components=components,
        connectors=connectors,
        providers={**providers, "seen": ProviderPlan(use="never-seen")},
    )


def _join(components: dict[str, ComponentPlan], before: str, behind: str) -> None:
    """The units that sent into `before` now send into `behind`."""
    for name, plan in components.items():
        ports = {role: behind if end == before else end for role, end in plan.ports.items()}
        components[name] = msgspec.structs.replace(plan, ports=ports)


def report(file: str, most: int = 20) -> str:
    """The pages and hosts that were visited most, each with its share of the steps."""
    visits: Counter[str] = Counter(msgspec.json.decode(Path(file).read_bytes(), type=dict[str, int]))
    hosts: Counter[str] = Counter()
    for url, count in visits.items():
        hosts[host_of(url)] += count
    total = visits.total() or 1
    lines = [f"{visits.total()} steps, {len(visits)} pages, {len(hosts)} hosts"]
    for name, counts in (("pages", visits), ("hosts", hosts)):
        lines += ["", name, *(f"{count / total:7.2%} {key}" for key, count in counts.most_common(most))]
    return "\n".join(lines)


def main() -> None:
    """`random-walker wiring` or `random-walker report FILE`."""
    if sys.argv[1:] == ["wiring"]:
        print(to_toml(wiring()))
    elif sys.argv[1:2] == ["report"] and len(sys.argv) == 3:
        print(report(sys.argv[2]))
    else:
        sys.exit("usage: random-walker wiring | random-walker report FILE")


if __name__ == "__main__":
    main()
