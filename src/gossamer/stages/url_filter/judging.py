"""A page's links, judged by all filters. Pure: the stage calls it, and so does whoever judges away from a crawl's graph."""

from collections.abc import Callable, Sequence

import msgspec

from gossamer.contracts.filtering import UrlFilter, VisitFilter, refusal
from gossamer.model.task import Task
from gossamer.model.visit import Link, Visit


def judged(
    visit: Visit, gates: Sequence[VisitFilter], filters: Sequence[UrlFilter], count: Callable[[str], None]
) -> Visit:
    """The visit with the links that every filter lets pass; the others are refused, and counted by rule in `rejected`.

    Args:
        visit: of a page whose links are resolved.
        gates: asked of the whole page at `expand`; a page that is refused keeps no link.
        filters: asked of its links, in order: later ones see only what earlier ones let pass.
        count: told `broken:CLASS` of a filter that raises, or that gives too few verdicts.
    """
    links: Sequence[Link] = visit.links
    if not links:
        return visit
    rejected = dict(visit.rejected)
    whole = refusal(gates, "expand", visit)
    if whole:
        rejected[whole] = rejected.get(whole, 0) + len(links)
        return msgspec.structs.replace(visit, links=(), refused=visit.links, rejected=rejected)
    refused: list[Link] = []
    for rule in filters:
        verdicts = _verdicts(rule, links, visit.task, count)
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
    return msgspec.structs.replace(visit, links=tuple(links), refused=tuple(refused), rejected=rejected)


def _verdicts(rule: UrlFilter, links: Sequence[Link], source: Task, count: Callable[[str], None]) -> Sequence[str]:
    try:
        verdicts = rule.judge(links, source)
        if len(verdicts) == len(links):
            return verdicts
        error = f"{len(verdicts)} verdicts for {len(links)} links"
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    # A filter that breaks never fails open: it refuses, and is counted.
    count(f"broken:{type(rule).__name__}")
    return [f"broken filter {type(rule).__name__}: {error:.200}"] * len(links)
