"""Options of `gossamer crawl` for crawls that come back to known pages; :mod:`gossamer.recrawl.changes` reads them."""

from typing import Annotated

from gossamer.engine.sheet import Sheet, setting

# Settings of the schedule, too (:mod:`gossamer.recrawl.policies`).

MinInterval = Annotated[
    float, setting("Wait at least this long between two visits of a page; default: 1h.", unit="s", gt=0)
]

MaxInterval = Annotated[
    float, setting("Wait at most this long between two visits of a page; default: 90d.", unit="s", gt=0)
]

Intervals = Annotated[
    tuple[str, ...],
    setting(
        'Use other bounds for pages for which an expression is true, as `1h..1d: path("/news/**")` or `..6h: host(a.example)`; '
        "the first expression that matches counts, and it wins over the bounds of hosts and of the crawl. See docs/order.md."
    ),
]


class RecrawlOptions(Sheet, frozen=True):
    """When known pages are visited again."""

    recrawl: Annotated[
        str,
        setting(
            "Visit known pages again: `adaptive` visits each page when a visit is worth most, an average page once "
            "in 7 days (`adaptive=1d`: in one day); `every=7d` visits each after that time; `proportional`, `nutch` "
            "and `stormcrawler` apply the rule of that name; `never` visits none. The crawl keeps running for these "
            "visits; with --linger 0s it makes those that are due and ends.",
        ),
    ] = ""
    recrawl_rate: (
        Annotated[
            str,
            setting(
                "While there are new pages, spend at most this share of the requests on known pages, as 20%; "
                "default: 50%.",
            ),
        ]
        | None
    ) = None
    min_interval: MinInterval | None = None
    max_interval: MaxInterval | None = None
    interval: Intervals = ()
