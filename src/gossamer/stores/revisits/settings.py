"""Settings of the schedule of known pages.

Place in the flow: `--recrawl` and the options that belong to it set them, and :mod:`~gossamer.stores.revisits.schedule` obeys them.
"""

from typing import Annotated

import msgspec

from gossamer.flow.sheet import Sheet, setting


class RevisitSheet(Sheet, frozen=True):
    """Settings of :class:`~gossamer.stores.revisits.schedule.RevisitSchedule`."""

    is_active: Annotated[bool, setting("Visit known pages again; otherwise only keep when that would be.")] = True
    rate: Annotated[
        float,
        setting("Let at most this share of all requests be for known pages, while there are new ones.", gt=0, le=1),
    ] = 0.5
    min_interval: Annotated[float, setting("Wait at least this long between two visits.", unit="s", gt=0)] = 3_600.0
    max_interval: Annotated[float, setting("Wait at most this long between two visits.", unit="s", gt=0)] = (
        90 * 86_400.0
    )
    mean_interval: Annotated[
        float,
        setting(
            "Set the price of visits so that the mean page is visited once in this time, where the policy asks for a price.",
            unit="s",
            gt=0,
        ),
    ] = 7 * 86_400.0
    weighs: Annotated[
        bool,
        setting("Take the level at which a new page waited for its importance: each level is half of the one before."),
    ] = False
    intervals: Annotated[
        tuple[str, ...],
        setting(
            "Keep these bounds for pages that an expression is true of, each as `MIN..MAX: EXPRESSION`; the first that fits holds, "
            "before the bounds of hosts and those of the crawl."
        ),
    ] = ()
    min_by_host: Annotated[
        dict[str, float],
        setting("Wait at least this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)
    max_by_host: Annotated[
        dict[str, float],
        setting("Wait at most this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)
