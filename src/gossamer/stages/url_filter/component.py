"""The filter stage: links that any filter refuses do not go on. Filters stand at named gates; this one is `follow`."""

from collections.abc import Sequence

import msgspec

from gossamer.contracts.filtering import UrlFilter
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, UsesMany
from gossamer.flow.sheet import NoSettings
from gossamer.model.task import Task
from gossamer.model.visit import Link, Visit


class Filtering(Filter[NoSettings]):
    """Keeps the links that every filter of the gate lets pass, and counts the others by the rule that refused them."""

    inbox: In[Visit]
    outbox: Out[Visit]
    filters: UsesMany[UrlFilter]

    def filter(self, visit: Visit) -> tuple[Visit]:
        """Judge a page's links, filter by filter: later ones see only what earlier ones let pass."""
        links: Sequence[Link] = visit.links
        if not links:
            return (visit,)
        rejected = dict(visit.rejected)
        refused: list[Link] = []
        for rule in self.filters.get("follow", ()):
            verdicts = self._judge(rule, links, visit.task)
            if any(verdicts):
                for verdict in verdicts:
                    if verdict:
                        rejected[verdict] = rejected.get(verdict, 0) + 1
                refused += [link for link, verdict in zip(links, verdicts, strict=True) if verdict]
                links = [link for link, verdict in zip(links, verdicts, strict=True) if not verdict]
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
