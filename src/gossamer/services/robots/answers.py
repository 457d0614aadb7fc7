"""What came of a request for robots.txt: from a :class:`~gossamer.model.visit.Response` to an event of the machine. Pure."""

from collections.abc import Mapping

from gossamer.model.dates import read_date
from gossamer.model.errors import UnreadableUrl
from gossamer.model.outcome import Outcome
from gossamer.model.url import canonical, of_field, scheme_of
from gossamer.model.visit import Response
from gossamer.services.robots.machine import Answered
from gossamer.services.robots.policies import RobotsEvent
from gossamer.services.robots.reading import MAX_BYTES, parse

#: Bytes of a validator that are kept: a longer one is not worth its memory on every host (fault 78).
_MAX_VALIDATOR = 128

#: Events that need no look at the answer but its outcome. Every other outcome means that there was none.
_BY_OUTCOME: Mapping[Outcome, RobotsEvent] = {
    Outcome.NOT_MODIFIED: RobotsEvent.UNCHANGED,
    Outcome.CLIENT_ERROR: RobotsEvent.REFUSED,
    Outcome.RATE_LIMITED: RobotsEvent.LIMITED,
    Outcome.SERVER_ERROR: RobotsEvent.BROKEN,
    Outcome.DECODE_FAILED: RobotsEvent.CUT,
    Outcome.BLOCKED: RobotsEvent.SHUT,
    Outcome.ADDRESS_REFUSED: RobotsEvent.SHUT,
}
#: Statuses that Agarwal and others, section 3.4, and fault 81 tell from others of their class.
_BY_STATUS: Mapping[int, RobotsEvent] = {
    400: RobotsEvent.MISSING,
    404: RobotsEvent.MISSING,
    410: RobotsEvent.MISSING,
    401: RobotsEvent.FORBIDDEN,
    403: RobotsEvent.FORBIDDEN,
}
_READ = (Outcome.OK, Outcome.TRUNCATED)


def answered(response: Response, url: str, agent: str) -> tuple[Answered, tuple[str, ...]]:
    """The event that an answer is, with the rules for `agent`; and the Sitemap lines, which are not kept with a site.

    Args:
        response: however the fetch ended.
        url: the URL that was asked for: what a relative Location is resolved against.
        agent: our product token.
    """
    if response.outcome in _READ:
        return _read(response, agent)
    if response.outcome is Outcome.REDIRECT:
        target = _target(response.header("location"), url)
        return Answered(RobotsEvent.MOVED if target else RobotsEvent.LOST, response.status, target=target), ()
    event = _BY_OUTCOME.get(response.outcome, RobotsEvent.FAILED)
    if event is RobotsEvent.REFUSED:
        event = _BY_STATUS.get(response.status, event)
    wait = seconds_of(response.header("retry-after"), response.started + response.elapsed)
    return Answered(event, response.status, retry_after=wait), ()


def _read(response: Response, agent: str) -> tuple[Answered, tuple[str, ...]]:
    data = response.content
    rules = parse(data)
    if len(data) > MAX_BYTES:
        event = RobotsEvent.CAPPED
    elif response.cut:
        event = RobotsEvent.CUT
    else:
        event = RobotsEvent.WHOLE if rules.readable else RobotsEvent.UNREADABLE
    etag, modified = response.header("etag"), response.header("last-modified")
    found = Answered(
        event,
        response.status,
        rules=rules.for_agent(agent),
        etag=etag if len(etag) <= _MAX_VALIDATOR else "",
        modified=modified if len(modified) <= _MAX_VALIDATOR else "",
    )
    return found, () if event is RobotsEvent.CUT else rules.sitemaps


def _target(location: str, url: str) -> str:
    """Where a redirect leads; empty where no crawler can follow it."""
    if not location:
        return ""
    try:
        target = canonical(of_field(location), url)
    except UnreadableUrl:
        return ""
    return target if scheme_of(target) in ("http", "https") else ""


def seconds_of(retry_after: str, now: float) -> float:
    """The wait that a `Retry-After` field asks for, in seconds or as a date (RFC 9110, 10.2.3); 0 for anything else."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    if not text:
        return 0.0
    instant = read_date(text)
    return 0.0 if instant is None else max(0.0, instant - now)
