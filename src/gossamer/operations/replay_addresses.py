"""Addresses of archived documents in a replay: short-lived, and good for nobody who was not given them. Pure.

Place in the flow: a replayed page has no origin, so that a browser sends no cookie with what the page asks for. Its addresses
themselves say what may be seen: the dashboard signs those that it gives out, and those that stand in a page that it gives out
(:mod:`gossamer.operations.replaying`). What a page leads to is good for as long as the page, and no longer.
"""

import hashlib
import hmac
from urllib.parse import parse_qsl, urlencode

import msgspec

#: Where replays are.
REPLAY = "/replay"

#: Seconds for which an address is good: a person reads a page, and follows some links.
LASTS = 3_600


class ReplayAsked(msgspec.Struct, frozen=True):
    """What one address shows."""

    crawl: str
    """The key of the crawl."""
    url: str
    """Canonical, or as a person wrote it."""
    at: str
    """Digits of a time: the version that is meant; empty for the last."""
    until: int
    """Seconds since 1970 (UTC) after which the address shows nothing."""
    depth: int = 0
    """Pages and sheets that asked for it, one for the other; 0 where a person did."""


class ReplayAddresses:
    """Makes and reads addresses by one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "<ReplayAddresses>"

    def of(self, asked: ReplayAsked) -> str:
        """The address: a path with its query."""
        return f"{REPLAY}?{urlencode({**msgspec.to_builtins(asked), 'sign': self._sign(asked)})}"

    def read(self, query: bytes, now: float) -> ReplayAsked | None:
        """What an address shows; None where we did not make it, or its time is over.

        Args:
            query: its query.
            now: seconds since 1970 (UTC).
        """
        given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
        sign = given.pop("sign", "")
        try:
            asked = msgspec.convert(given, ReplayAsked, strict=False)
        except msgspec.ValidationError:
            return None
        if not hmac.compare_digest(self._sign(asked).encode(), sign.encode("utf-8", "replace")) or now > asked.until:
            return None
        return asked

    def _sign(self, asked: ReplayAsked) -> str:
        return hmac.new(self._secret, msgspec.msgpack.encode(asked), hashlib.sha256).hexdigest()
