"""The settings of the commit."""

from typing import Annotated

from gossamer.flow.sheet import Sheet, setting


class CommitSheet(Sheet, frozen=True):
    """Settings of :class:`Commit`."""

    again: Annotated[bool, setting("URLs may be fetched again: there is no URL-seen test (random walks).")] = False
    depth: (
        Annotated[
            int,
            setting(
                "Links from the nearest seed; then pages' links are kept, so that a nearer way counts (design question 4).",
                unit="links",
                ge=0,
            ),
        ]
        | None
    ) = None
    sitemaps: Annotated[bool, setting("Fetch the sitemaps that robots.txt names.")] = False
    max_per_host: Annotated[int, setting("URLs ever queued of one host; more are cut.", unit="URLs", ge=1)] | None = (
        1_000_000
    )
    max_per_domain: (
        Annotated[int, setting("URLs ever queued of one registered domain; more are cut.", unit="URLs", ge=1)] | None
    ) = 4_000_000
    disk_wait: Annotated[
        float, setting("Wait this many seconds between two tries to write while the disk is full.", unit="s", gt=0)
    ] = 1.0  # soon enough for a person who makes room, and far from busy waiting
