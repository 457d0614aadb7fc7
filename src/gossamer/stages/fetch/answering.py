"""From a transfer that has ended to the response that the crawl keeps.

Place in the flow: the protocol module for http (:mod:`~gossamer.stages.fetch.http`) makes a response of each of its transfers here.
"""

import msgspec
import pycurl

from gossamer.model.requesting import Requested
from gossamer.model.visit import Response
from gossamer.reading.keeping import Keeping
from gossamer.stages.fetch.bodies import body_of, notes_of
from gossamer.stages.fetch.head import Head
from gossamer.stages.fetch.transfer import Cut, Transfer, Wanted


class Asked(msgspec.Struct, frozen=True):
    """One request as it is to be sent."""

    url: str
    started: float
    """Seconds since the epoch."""
    resolved: float
    """Seconds that finding the address took."""
    shown: tuple[str, ...] = ()
    """Fields of this request alone."""
    secret: tuple[str, ...] = ()
    """Those that are kept out of the archive."""
    wanted: Wanted | None = None
    request: Requested | None = None
    """What is sent beside that; None for a plain GET."""


class Answering(msgspec.Struct, frozen=True):
    """What is known of an exchange beside its transfer."""

    keeping: Keeping
    address: str
    """The server's, for the row and the archive; empty where a proxy alone knows it."""
    elapsed: float
    """Seconds, without those in which the crawl's own bandwidth held the transfer up."""
    is_timed: bool
    """The response says how long each part took."""
    is_direct: bool
    """No proxy stands between."""


def answer_of(transfer: Transfer, asked: Asked, verdict: Cut, how: Answering) -> Response:
    """The response of a transfer whose head has been judged, as far as one came."""
    if transfer.head is None:
        return _without_head(transfer, asked, verdict, how)
    return _with_head(transfer, transfer.head, asked, verdict, how)


def _without_head(transfer: Transfer, asked: Asked, verdict: Cut, how: Answering) -> Response:
    sent = transfer.is_sent
    is_new = transfer.curl.getinfo(pycurl.NUM_CONNECTS) > 0
    return Response(
        verdict.outcome,
        request_head=transfer.request_head(asked.url, asked.shown) if sent else b"",
        address=how.address if sent else "",
        started=asked.started,
        elapsed=how.elapsed,
        error=verdict.reason,
        timings=transfer.timings(asked.resolved, how.elapsed) if how.is_timed else None,
        is_met=bool(transfer.lines)
        or (how.is_direct and is_new and sent)
        or (asked.request is not None and transfer.is_asked),
        is_unverified=_is_unverified(transfer, asked),
    )


def _with_head(transfer: Transfer, head: Head, asked: Asked, verdict: Cut, how: Answering) -> Response:
    body, decoded, of_body, verdict = body_of(transfer, head, verdict, how.keeping)
    return Response(
        verdict.outcome,
        status=head.status,
        request_head=transfer.request_head(asked.url, asked.shown),
        response_head=head.raw,
        headers=head.fields,
        body=body,
        decoded=decoded,
        address=how.address,
        started=asked.started,
        elapsed=how.elapsed,
        cut=verdict.cut,
        error=verdict.reason,
        timings=transfer.timings(asked.resolved, how.elapsed) if how.is_timed else None,
        version=transfer.version if how.is_timed else "",
        is_met=True,
        is_unverified=_is_unverified(transfer, asked),
        barred=verdict.barred,
        notes=notes_of(head, of_body),
    )


def _is_unverified(transfer: Transfer, asked: Asked) -> bool:
    """Nobody has checked who the server is."""
    return not transfer.shared.verifies and asked.url.startswith("https:")
