"""Policies: how long a page can wait for its next visit. Contract: `revisiting.RevisitPolicy`."""

from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.known import KnownPage


class FixedIntervalSheet(Sheet, frozen=True):
    """Settings of :class:`FixedInterval`."""

    every: Annotated[float, setting("Visit each page again after this time.", unit="s", gt=0)] = 7 * 86_400.0


class FixedInterval(Provider[FixedIntervalSheet]):
    """The same interval for all pages (`--recrawl every=TIME`)."""

    def interval(self, page: KnownPage) -> float:
        """Seconds to the next visit: as the setting says."""
        return self.sheet.every
