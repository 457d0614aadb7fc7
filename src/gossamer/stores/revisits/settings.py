"""Settings of the schedule of known pages.

Place in the flow: `--recrawl` and the options that belong to it set them, and :mod:`~gossamer.stores.revisits.schedule` obeys them.
"""

from typing import Annotated

import msgspec

from gossamer.flow.sheet import Sheet, setting


class RevisitSheet(Sheet, frozen=True):
    """Settings of :class:`~gossamer.stores.revisits.schedule.RevisitSchedule`."""

    is_active: Annotated[bool, setting("Visit known pages again; if off, only compute the times of these visits.")] = (
        True
    )
    rate: Annotated[
        float,
        setting("While there are new pages, spend at most this share of all requests on known pages.", gt=0, le=1),
    ] = 0.5
    min_interval: Annotated[float, setting("Wait at least this long between two visits.", unit="s", gt=0)] = 3_600.0
    max_interval: Annotated[float, setting("Wait at most this long between two visits.", unit="s", gt=0)] = (
        90 * 86_400.0
    )
    mean_interval: Annotated[
        float,
        setting(
            "If the policy uses a price, set it so that an average page is visited once in this time.",
            unit="s",
            gt=0,
        ),
    ] = 7 * 86_400.0
    weighs: Annotated[
        bool,
        setting(
            "Use the priority level at which a new page waited as its importance; each level counts half of the one "
            "before."
        ),
    ] = False
    intervals: Annotated[
        tuple[str, ...],
        setting(
            "Use these bounds for pages for which an expression is true, each as `MIN..MAX: EXPRESSION`. The first "
            "expression that matches counts, and it wins over the bounds of hosts and of the crawl."
        ),
    ] = ()
    min_by_host: Annotated[
        dict[str, Annotated[float, msgspec.Meta(gt=0)]],
        setting("Wait at least this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)
    max_by_host: Annotated[
        dict[str, Annotated[float, msgspec.Meta(gt=0)]],
        setting("Wait at most this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)
