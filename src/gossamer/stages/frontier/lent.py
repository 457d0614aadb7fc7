"""URLs that mobile crawlers have, or that wait for one, as the frontier sees them: it hands out none, and waits for them.

Place in the flow: lenders (`contracts.lending.LentHosts`) are providers of the frontier. Most crawls have none, so
that case costs least: the frontier asks before each task.
"""

from collections.abc import Callable, Sequence

from gossamer.contracts.lending import LentHosts
from gossamer.stages.frontier.uses import FrontierUses


class LentOut:
    """What all lenders together have out."""

    def __init__(self, uses: FrontierUses) -> None:
        self._uses = uses

    def __repr__(self) -> str:
        return f"<LentOut by {len(self._lenders)} lenders>"

    @property
    def _lenders(self) -> Sequence[LentHosts]:
        return self._uses.lent.get("hosts", ())

    @property
    def is_out(self) -> bool:
        """Whether URLs are with crawlers elsewhere, or wait for one."""
        lenders = self._lenders
        return bool(lenders) and any(lender.is_out for lender in lenders)

    @property
    def pages(self) -> int:
        """Pages that crawlers on their way may bring."""
        lenders = self._lenders
        return sum(lender.pages for lender in lenders) if lenders else 0

    def watch(self, told: Callable[[], None], room: Callable[[], int | None]) -> None:
        """Let lenders call `told` when they have news, and ask `room` how many pages are nobody's yet."""
        for lender in self._lenders:
            lender.watch(told, room)

    def end(self) -> None:
        """The crawl ends: nothing is sent any more."""
        for lender in self._lenders:
            lender.end()
