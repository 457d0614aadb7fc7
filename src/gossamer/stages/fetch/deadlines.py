"""The deadlines of one transfer, judged from outside while it is under way: each phase has its own.

Place in the flow: the protocol module for http looks at its live transfers now and then and asks here. Decisions alone; the
module's clock says what time it is.
"""

import msgspec
import pycurl

from gossamer.model.outcome import Outcome
from gossamer.stages.fetch.transfer import Cut, Transfer


class Deadlines(msgspec.Struct, frozen=True):
    """The deadlines of one request, all in seconds."""

    connect: float
    tls: float
    head: float
    whole: float
    least_speed: float
    """Bytes per second, over `window`."""
    window: float


def overdue(transfer: Transfer, limits: Deadlines, now: float) -> Cut | None:
    """Has a transfer outlived one of its deadlines? Each phase has its own, and its own outcome (faults 11-15).

    What the bandwidth of the crawl has kept waiting is as much younger.
    """
    now -= transfer.held(now)
    waited = now - transfer.began
    has_head = transfer.head is not None or (bool(transfer.lines) and transfer.judge_head())
    if transfer.verdict is not None:
        return transfer.verdict
    if waited > limits.whole:
        return Cut(
            Outcome.TIMED_OUT, f"the answer was not complete within {limits.whole:g} s", "time" if has_head else ""
        )
    if has_head:
        return _slow(transfer, limits, now)
    if waited <= min(limits.connect, limits.head):
        return None
    if transfer.is_sent:
        if waited - transfer.curl.getinfo(pycurl.PRETRANSFER_TIME) > limits.head:
            return Cut(Outcome.TIMED_OUT, f"the head of the answer was not complete within {limits.head:g} s")
    elif not transfer.is_connected:
        if waited > limits.connect:
            return Cut(Outcome.CONNECT_FAILED, f"the server took no connection within {limits.connect:g} s")
    elif waited > limits.connect + limits.tls:
        return Cut(Outcome.TLS_FAILED, f"the server agreed on no TLS session within {limits.tls:g} s")
    return None


def _slow(transfer: Transfer, limits: Deadlines, now: float) -> Cut | None:
    """Compare with the mark of a window ago; the first one is set when the body is first seen."""
    if transfer.mark is None:
        transfer.mark = (now, transfer.size)
        return None
    since, size = transfer.mark
    if now - since < limits.window:
        return None
    if transfer.size - size < limits.least_speed * (now - since):
        return Cut(Outcome.TOO_SLOW, f"the body came at less than {limits.least_speed:g} bytes/s", "time")
    transfer.mark = (now, transfer.size)
    return None
