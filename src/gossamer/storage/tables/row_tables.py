"""The tables that ship, apart from `pages`: `errors`, `host_notes`, `items`, `samples`, `links` and `copies`.

Place in the flow: rows of `errors`, `items` and `links` come out of visits with their commit. The ledger's notes on hosts are
written when a run ends (:func:`host_row`), and the table `hosts` joins them with the pages; :mod:`gossamer.crawls.figures` writes
`samples`, with the numbers that `status` shows at that instant, and `copies`, out of the claims of agents.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from gossamer.storage.logs import MAX_LINE_BYTES
from gossamer.storage.tables.contract import RowSource, Table, column
from gossamer.values.agents import Claim
from gossamer.values.hosts import registered_domain
from gossamer.values.instants import utc_text
from gossamer.values.ledger_rows import HostState

# `errors`: what processors and handlers of a user's own raised, each with the line of their code and its traceback.


class ErrorRow(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="event", tag="error"
):  # fmt: skip
    """One exception of a processor or handler."""

    url: Annotated[str, column("The page's URL.")]
    who: Annotated[str, column("The processor or handler that raised it.")]
    place: Annotated[str, column("File and line of the user's code.")] = ""
    error: Annotated[str, column("Class and text of the exception.")]
    traceback: Annotated[str, column("The calls that led to it, the innermost last.")] = ""
    visit: Annotated[str, column("The visit during which it was raised, as in `pages`.")] = ""


ERRORS = Table(
    "errors",
    ErrorRow,
    "Errors that processors and handlers raised.",
    rows=lambda told: [
        ErrorRow(**msgspec.structs.asdict(one), url=told.visit.url, visit=told.visit.id) for one in told.visit.errors
    ],
    is_made=True,
    is_logged=True,
)


# `host_notes`: what the ledger knew of hosts when a run ended. The table `hosts` joins it with what the pages show.


class HostRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The ledger's knowledge of a host, as of an instant; the newest row of a host counts."""

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
    "host_notes", HostRow, "Notes of the ledger on hosts, at several times; `hosts` has the newest.", page=""
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


# `items`: what processors took out of pages. A value that no row can hold is told instead of kept.

#: Characters of a kind that stand in the row of an item that is too large.
_MAX_KIND = 256


class ItemRow(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="event", tag="item"
):  # fmt: skip
    """One item that a user's processor took out of a page."""

    kind: Annotated[str, column("The processor's name for this kind of item.")]
    url: Annotated[str, column("The page's URL.")]
    data: Annotated[object, column("The item: `data->>'$.price'` takes a field out of it.")]
    visit: Annotated[str, column("The visit that found it, as in `pages`.")] = ""


ITEMS = Table(
    "items",
    ItemRow,
    "Items that processors took out of pages.",
    rows=lambda told: [
        ItemRow(kind=item.kind, url=item.url, data=item.value, visit=told.visit.id) for item in told.visit.items
    ],
    # One that is too large, or that no JSON can hold and was not refused where it was made.
    mend=lambda row, size: ItemRow(
        kind=row.kind[:_MAX_KIND],
        url=row.url,
        data={"too_large": size, "most": MAX_LINE_BYTES} if size else {"unwritable": True},
        visit=row.visit,
    ),
    kind="kind",
    is_made=True,
    is_logged=True,
)

# `samples`: how a crawl stood, every ten seconds. Plots of a crawl are drawn from it, also when the crawl has ended.

#: Seconds between two samples, seconds between two that are kept for good, and seconds for which the others are kept.
FINE, COARSE, FINE_FOR = 10, 300, 86_400


class SampleRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How an agent of the crawl stood at an instant; counts are of the whole life of the crawl."""

    taken_at: Annotated[str, column("When the sample was taken, UTC.", type="TIMESTAMP")]
    agent: Annotated[str, column("The agent that took it.")]
    every: Annotated[int, column("Whether the sample is kept for good (300) or for a day (10).", unit="s")] = FINE
    state: Annotated[str, column("State of the crawl, in the words of `status`.")] = ""
    pages: Annotated[int, column("Successful HTML documents.")] = 0
    fetched: Annotated[int, column("Answered requests, without those for robots.txt.")] = 0
    unique_documents: Annotated[int, column("Documents that differ from each other.")] = 0
    bytes: Annotated[int, column("Bytes that were received.", unit="bytes")] = 0
    errors: Annotated[int, column("Requests that failed, and names without an address.")] = 0
    raised: Annotated[int, column("Visits on which processors or handlers raised.")] = 0
    discovered: Annotated[int, column("URLs that were found.")] = 0
    queued: Annotated[int, column("URLs that wait.")] = 0
    set_aside: Annotated[int, column("URLs that look like parts of traps.")] = 0
    in_flight: Annotated[int, column("Requests in flight.")] = 0
    hosts: Annotated[int, column("Hosts that were asked.")] = 0
    seconds: Annotated[float, column("Time since the run began.", unit="s")] = 0.0
    pages_per_second: Annotated[float, column("Speed over the last ten seconds.")] = 0.0
    cpu_seconds: Annotated[float, column("CPU time that the run has used.", unit="s")] = 0.0
    peak_rss_bytes: Annotated[int, column("Largest amount of memory that the run has used.", unit="bytes")] = 0
    disk_free: Annotated[int, column("Room on the disk of the crawl directory.", unit="bytes")] = 0
    outcomes: Annotated[dict[str, int], column("Requests by outcome: `outcomes->>'$.ok'` takes one out of it.")] = {}
    sizes: Annotated[dict[str, int], column("Bytes of the main data sets by name, as `status` shows them.")] = {}


SAMPLES = Table(
    "samples", SampleRow, "How the crawl stood: every ten seconds of its last day, every five minutes before.", page=""
)


# `links`: every link of every page, column by column in frames, since a frame of 58 links costs a tenth of 58 rows.

#: Links in one frame: 500 of the longest URLs with anchors that are all escapes stay below what a reader takes as one line.
MAX_FRAME_LINKS = 500

#: The relation of most links: a frame in which all links have it leaves the column out.
_USUAL = "a href"


class LinksRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The links of one page. A column that is the same for all of them is left out: no anchor, no `nofollow`, `a href`."""

    source: Annotated[str, column("The page's URL.")]
    target: Annotated[list[str], column("The link, resolved and canonical.")]
    relation: Annotated[
        list[str], column("Tag and attribute, as `a href`; `redirect` for the target of one.", fill=_USUAL)
    ] = []
    anchor: Annotated[list[str], column("Text of the link, where it is kept.", fill="")] = []
    nofollow: Annotated[list[bool], column("The page does not vouch for it.", fill=False)] = []
    visit: Annotated[str, column("The visit that found it, as in `pages`.")] = ""
    source_host: Annotated[str, column("Host name of the page, without port.", host_of="source")] = ""
    target_host: Annotated[list[str], column("Host name of the link, without port.", host_of="target")] = []


def _link_rows(told: RowSource) -> Iterable[LinksRow]:
    """The frames of a page's links, those that the filters refused at the end."""
    found = [*told.visit.links, *told.visit.refused]
    for links in (found[at : at + MAX_FRAME_LINKS] for at in range(0, len(found), MAX_FRAME_LINKS)):
        relations = [link.relation for link in links]
        anchors = [link.anchor for link in links]
        nofollow = [link.nofollow for link in links]
        yield LinksRow(
            source=told.task.url,
            target=[link.url for link in links],
            relation=[] if relations.count(_USUAL) == len(relations) else relations,
            anchor=anchors if any(anchors) else [],
            nofollow=nofollow if True in nofollow else [],
            visit=told.visit.id,
        )


LINKS = Table(
    "links",
    LinksRow,
    "Every link of every page to another, each once, those that the filters refused too; kept where `tables` of the log names it.",
    rows=_link_rows,
    page="source",
    is_made=True,
)


# `copies`: documents that several agents of a crawl keep. The table `pages` takes its `duplicate_of` from it.


class CopyRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An agent keeps a document that another agent keeps too."""

    digest: Annotated[str, column("Digest of the document, as in `pages`.")]
    url: Annotated[str, column("The URL at which one agent met the document first.")]
    met_at: Annotated[str, column("When that agent asked for it, UTC.", type="TIMESTAMP")]


COPIES = Table(
    "copies",
    CopyRow,
    "Documents that several agents keep; `duplicate_of` in `pages` names the URL that an agent met first.",
    page="",
)


def copy_row(claim: Claim) -> CopyRow:
    return CopyRow(digest=claim.digest, url=claim.url, met_at=utc_text(claim.met_at))
