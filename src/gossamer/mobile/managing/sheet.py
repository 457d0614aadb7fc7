"""The settings of the crawler manager."""

from typing import Annotated, Literal

from gossamer.flow.sheet import Sheet, setting
from gossamer.mobile.crawler import BringRules, BroughtPart
from gossamer.mobile.managing.making import CrawlerTemplate, CrawlScope

_AWAY = "crawlers are on their way with it"


class CrawlersSheet(Sheet, frozen=True):
    """Settings of :class:`Crawlers`."""

    scope: Annotated[CrawlScope, setting("Keep crawlers within this scope.", restart=_AWAY)] = "host"
    seeds: Annotated[tuple[str, ...], setting("Draw the scope around these URLs.", restart=_AWAY)] = ()
    follow: Annotated[
        str, setting("Let crawlers follow a link only if this expression is true of it.", restart=_AWAY)
    ] = ""
    expand: Annotated[
        str, setting("Let crawlers follow links of a page only if this expression is true of it.", restart=_AWAY)
    ] = ""
    store: Annotated[
        str, setting("Let crawlers bring a document only if this expression is true of it.", restart=_AWAY)
    ] = ""
    traversal: Annotated[
        Literal["breadth", "depth", "host-breadth"], setting("Let crawlers visit pages in this order.", restart=_AWAY)
    ] = "breadth"
    depth: (
        Annotated[
            int, setting("Let crawlers follow at most this many links in a row.", unit="links", restart=_AWAY, ge=0)
        ]
        | None
    ) = None
    urls: Annotated[int, setting("Let crawlers visit at most this many URLs of a host.", unit="URLs", ge=1)] | None = (
        None
    )
    parts: Annotated[
        tuple[BroughtPart, ...], setting("Bring these parts of a relevant document home.", restart=_AWAY)
    ] = ("whole",)
    elements: Annotated[tuple[str, ...], setting("Bring the elements that these selectors find.", restart=_AWAY)] = ()
    irrelevant: Annotated[
        Literal["counts", "rows"],
        setting("Count irrelevant documents (`counts`), or bring a row for each (`rows`).", restart=_AWAY),
    ] = "counts"
    seconds: Annotated[float, setting("Let a crawler work for at most this long.", unit="s", gt=0)] = 86_400.0
    brought: Annotated[
        int, setting("Let a crawler bring home at most this many bytes, before compression.", unit="bytes", ge=1)
    ] = 10_000_000_000
    most: Annotated[int, setting("Keep at most this many crawlers at runtimes at once.", unit="crawlers", ge=1)] = 64
    hosts: Annotated[int, setting("Send one crawler to at most this many hosts of a runtime.", unit="hosts", ge=1)] = 1
    per_host: Annotated[
        int, setting("Divide the URLs of a host among at most this many crawlers.", unit="crawlers", ge=1)
    ] = 1
    gather: Annotated[
        float, setting("Wait this long for more URLs of a host before sending a crawler.", unit="s", gt=0)
    ] = 0.5  # a page names many URLs at once, and a crawler costs as much for one as for a thousand
    lease: Annotated[
        float, setting("Count a crawler as lost if its runtime is silent for this long.", unit="s", gt=0)
    ] = 600.0
    reach: Annotated[
        float,
        setting(
            "Count a crawler as lost if its runtime cannot be reached for this long before the crawler starts.",
            unit="s",
            ge=0,
        ),
    ] = 30.0
    tries: Annotated[
        int, setting("Fetch a host without crawlers after this many crawlers were lost.", unit="crawlers", ge=1)
    ] = 2

    def template(self) -> CrawlerTemplate:
        """What all crawlers have in common."""
        return CrawlerTemplate(
            scope=self.scope,
            seeds=self.seeds,
            follow=self.follow,
            expand=self.expand,
            store=self.store,
            traversal=self.traversal,
            depth=self.depth,
            urls=self.urls,
            bring=BringRules(self.parts, self.elements, self.irrelevant, errors=True),
            seconds=self.seconds,
            brought=self.brought,
        )

    def __post_init__(self) -> None:
        """Refuse what no crawler can be made of."""
        if not (self.parts or self.elements):
            raise ValueError("setting 'parts': a crawler that brings nothing is sent for nothing")
