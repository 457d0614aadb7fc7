"""Filter by the user's own patterns: `--include` and `--exclude`.

Place in the flow: links ─► **filter** ─► URL-seen. Patterns are RE2: linear, whatever they are (fault 63).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

from gossamer.expressions.patterns import any_of
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.task import Task
from gossamer.model.visit import Link

#: URLs whose verdict is remembered: a match costs 2 us by way of Python, and the pages of a site repeat their links.
REMEMBERED_URLS = 32_768


class PatternSheet(Sheet, frozen=True):
    """Settings of :class:`PatternFilter`."""

    include: Annotated[
        tuple[str, ...], setting("If not empty, let only URLs pass that contain a match of one of these RE2 patterns.")
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        setting("Refuse URLs that contain a match of one of these RE2 patterns; this wins over `include`."),
    ] = ()


class PatternFilter(Provider[PatternSheet]):
    """Refuses links that match a pattern of `exclude` or, if `include` has patterns, match none of them. Contract:
    `filtering.UrlFilter`.

    Raises:
        SettingError: a pattern is too long, or RE2 refuses it.
    """

    def __init__(self, sheet: PatternSheet | None = None) -> None:
        super().__init__(sheet)
        self._compile()

    def changed(self, before: PatternSheet) -> None:
        """Take the new patterns, or keep the old ones if a new one is bad."""
        self._compile()

    def _compile(self) -> None:
        include, exclude = any_of("include", self.sheet.include), any_of("exclude", self.sheet.exclude)

        def verdict(url: str) -> str:
            if exclude is not None and exclude.search(url) is not None:
                return "exclude"
            return "include" if include is not None and include.search(url) is None else ""

        self._idle = include is None and exclude is None
        self._verdict = lru_cache(REMEMBERED_URLS)(verdict)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`exclude` or `include` for each link that is refused."""
        if self._idle:
            return [""] * len(links)
        verdict = self._verdict
        return [verdict(link.url) for link in links]
