"""The filter stage: links that any filter refuses do not go on. It owns the gates `expand` and `follow` (row M5)."""

from collections.abc import Sequence

import msgspec

from gossamer.contracts.filtering import UrlFilter, VisitFilter, refusal
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, UsesMany
from gossamer.flow.sheet import NoSettings
from gossamer.model.task import Task
from gossamer.model.visit import Link, Visit


class Filtering(Filter[NoSettings]):
    """Keeps the links that every filter of `follow` lets pass, and counts the others by the rule that refused them.

    A page that is refused at `expand` keeps none.
    """

    inbox: In[Visit]
    outbox: Out[Visit]
    filters: UsesMany[UrlFilter]
    gates: UsesMany[VisitFilter]

    def filter(self, visit: Visit) -> tuple[Visit]:
        """Judge a page's links, filter by filter: later ones see only what earlier ones let pass."""
        links: Sequence[Link] = visit.links
        if not links:
            return (visit,)
        rejected = dict(visit.rejected)
        whole = refusal(self.gates.get("expand", ()), "expand", visit)
        if whole:
            rejected[whole] = rejected.get(whole, 0) + len(links)
            return (msgspec.structs.replace(visit, links=(), refused=visit.links, rejected=rejected),)
        refused: list[Link] = []
        for rule in self.filters.get("follow", ()):
            verdicts = self._judge(rule, links, visit.task)
            if verdicts.count("") == len(links):
                continue
            kept: list[Link] = []
            for link, verdict in zip(links, verdicts, strict=True):
                if verdict:
                    rejected[verdict] = rejected.get(verdict, 0) + 1
                    refused.append(link)
                else:
                    kept.append(link)
            links = kept
        return (msgspec.structs.replace(visit, links=tuple(links), refused=tuple(refused), rejected=rejected),)

    def _judge(self, rule: UrlFilter, links: Sequence[Link], source: Task) -> Sequence[str]:
        try:
            verdicts = rule.judge(links, source)
            if len(verdicts) == len(links):
                return verdicts
            error = f"{len(verdicts)} verdicts for {len(links)} links"
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        # A filter that breaks never fails open: it refuses, and is counted.
        self.metrics.count(f"broken:{type(rule).__name__}")
        return [f"broken filter {type(rule).__name__}: {error:.200}"] * len(links)
