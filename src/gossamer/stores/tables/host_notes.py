"""`host_notes`: what the ledger knew of hosts when a run ended. The table `hosts` joins it with what the pages show."""

from typing import Annotated

import msgspec

from gossamer.contracts.tables import Table, column
from gossamer.model.dates import utc_text
from gossamer.model.domains import registered_domain
from gossamer.model.kept import HostState


class HostRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the ledger knows of a host, as of an instant; the newest row of a host counts."""

    host: Annotated[str, column("Host name, without port.")]
    domain: Annotated[str, column("Registered domain.")]
    ip: Annotated[str, column("Address that answered last.")] = ""
    robots_state: Annotated[str, column("State of robots exclusion.")] = ""
    robots_date: Annotated[str, column("When robots.txt was last fetched, UTC.", type="TIMESTAMP")] = ""
    delay: Annotated[float | None, column("Last time that politeness kept between two requests.", unit="s")] = None
    delay_reason: Annotated[
        str, column("Why the delay is no shorter: `setting`, `latency`, `robots`, `errors` or `refusals`.")
    ] = ""
    pages: Annotated[int | None, column("Successful HTML documents.")] = None
    errors: Annotated[
        int | None,
        column("Requests that failed, for robots.txt too: those whose outcome is an error in `outcomes.md`."),
    ] = None
    first_seen: Annotated[str, column("First request, UTC.", type="TIMESTAMP")] = ""
    last_seen: Annotated[str, column("Last request, UTC.", type="TIMESTAMP")] = ""
    at: Annotated[str, column("When this was written down, UTC.", type="TIMESTAMP")]


HOST_NOTES = Table(
    "host_notes",
    HostRow,
    "Notes of the ledger on hosts, at several times; `hosts` has the newest.",
    page="",
)


def host_row(state: HostState, at: float) -> HostRow:
    """The row of what the ledger keeps of a host, as of `at` (seconds since the epoch)."""
    return HostRow(
        host=state.host,
        domain=registered_domain(state.host),
        at=utc_text(at),
        ip=state.address,
        robots_state=state.robots_state,
        robots_date=utc_text(state.robots_date) if state.robots_date else "",
        delay=state.delay if state.delay_reason else None,
        delay_reason=state.delay_reason,
        pages=state.counters.get("pages"),
        errors=state.counters.get("errors"),
        first_seen=utc_text(state.first_seen) if state.first_seen else "",
        last_seen=utc_text(state.last_seen) if state.last_seen else "",
    )
