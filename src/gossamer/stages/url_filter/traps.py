"""Filter by the shape of a URL: paths and queries that only a trap or a broken link makes (FAULTS 38, MISSION S13).

Place in the flow: links ─► **filter** ─► URL-seen. Pure, and the same wherever it stands. What shows only when pages are fetched is
learnt in :mod:`gossamer.services.traps`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.task import Task
from gossamer.model.url import path_of
from gossamer.model.visit import Link
from gossamer.stages.url_filter.remembering import Remembered


class TrapShapeSheet(Sheet, frozen=True):
    """Settings of :class:`TrapShapes`."""

    cut: Annotated[bool, setting("Refuse such links; otherwise all pass.")] = True
    repeats: Annotated[
        int,
        setting("How often a segment may occur in a path that grows from page to page; numbers may always.", ge=1),
    ] = 2
    segments: Annotated[int, setting("Segments of the longest path that is followed.", unit="segments", ge=1)] = 20
    parameters: Annotated[
        int, setting("How often a parameter may occur in a query; those that end in [] may always.", ge=1)
    ] = 2


class TrapShapes(Provider[TrapShapeSheet]):
    """Refuses links by shape. Contract: `filtering.UrlFilter`.

    ============================ ===============================================================================
    `trap:repeated-segments`     the link goes deeper from its page, and a segment that repeats does so once more
    `trap:deep-path`             more segments than any site nests
    `trap:repeated-parameters`   one parameter again and again, as lists do that add every choice to the last one
    ============================ ===============================================================================

    That a segment repeats is no crime by itself (`/a/a/a`, once linked to, is a page); that it does so once more behind every
    link is.
    """

    def __init__(self, sheet: TrapShapeSheet | None = None) -> None:
        super().__init__(sheet)
        self._of_url = Remembered(self._judge)

    def changed(self, before: TrapShapeSheet) -> None:
        """Judge by the new limits."""
        self._of_url = Remembered(self._judge)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`trap:...` for each link that is refused."""
        if not self.sheet.cut:
            return [""] * len(links)
        of_url = self._of_url
        verdicts = [of_url[link.url] for link in links]
        directory = source.url.partition("?")[0].rpartition("/")[0] + "/"
        # A deeper link can only repeat a segment too often if the page's own path has it often enough.
        if _most(directory) < self.sheet.repeats:
            return verdicts
        return [verdict or self._repeats(link.url, directory) for link, verdict in zip(links, verdicts, strict=True)]

    def _judge(self, url: str) -> str:
        limits = self.sheet
        # Three slashes belong to no segment.
        if url.count("/") > limits.segments + 2 and _depth(url) > limits.segments:
            return "trap:deep-path"
        if url.count("&") >= limits.parameters and _most_named(url) > limits.parameters:
            return "trap:repeated-parameters"
        return ""

    def _repeats(self, url: str, directory: str) -> str:
        if url.startswith(directory) and _most(url) > self.sheet.repeats:
            return "trap:repeated-segments"
        return ""


def _depth(url: str) -> int:
    return sum(1 for one in path_of(url).partition("?")[0].split("/") if one)


def _most(url: str) -> int:
    """How often the most frequent segment of the path occurs. Numbers do not count: dates and trees repeat them."""
    segments = [one for one in path_of(url).partition("?")[0].split("/") if one and not one.isdecimal()]
    if len(set(segments)) == len(segments):
        return 1 if segments else 0  # as nearly all
    return max(Counter(segments).values())


def _most_named(url: str) -> int:
    """How often the most frequent parameter occurs. Names that end in brackets are lists by intent (PHP, Rails)."""
    names = (one.partition("=")[0] for one in url.partition("?")[2].split("&") if one)
    return max(Counter(name for name in names if not name.endswith(("[]", "%5B%5D"))).values(), default=0)
