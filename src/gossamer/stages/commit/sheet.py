"""The settings of the commit."""

from typing import Annotated

import msgspec

from gossamer.flow.sheet import Sheet, setting
from gossamer.model.errors import UsageError
from gossamer.model.host_table import HostTable


class CommitSheet(Sheet, frozen=True):
    """Settings of :class:`Commit`."""

    again: Annotated[bool, setting("Let URLs be fetched again, without a URL-seen test (for random walks).")] = False
    sitemaps: Annotated[bool, setting("Fetch the sitemaps that robots.txt names.")] = False
    max_by_host: Annotated[
        dict[str, Annotated[int, msgspec.Meta(ge=1)]],
        setting(
            "Queue at most this many URLs of these hosts, as `*.example.org`, instead of `max_per_host`; cut the rest."
        ),
    ] = msgspec.field(default_factory=dict)
    max_per_host: (
        Annotated[int, setting("Queue at most this many URLs of a host; cut the rest.", unit="URLs", ge=1)] | None
    ) = 1_000_000
    max_per_domain: (
        Annotated[int, setting("Queue at most this many URLs of a registered domain; cut the rest.", unit="URLs", ge=1)]
        | None
    ) = 4_000_000
    disk_wait: Annotated[
        float, setting("While the disk is full, try again to write after this many seconds.", unit="s", gt=0)
    ] = 1.0  # soon enough for a person who makes room, and far from busy waiting

    def __post_init__(self) -> None:
        """Refuse names of hosts that are none."""
        try:
            HostTable(self.max_by_host)
        except UsageError as error:
            raise ValueError(f"setting 'max_by_host': {error}") from None
