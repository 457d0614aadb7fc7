"""Seen tests for URLs, contents and texts, at once or later in bulk (rows M3, M6, P2, S12). Suites:
`gossamer.testing.check_seen_set`, `check_content_index`, `check_fingerprint_index`.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


class SeenSet(Protocol):
    """Remembers URLs, in batches.

    Promises (after BUbiNG's sieve):
        1. Every new URL comes out of `offer`, sooner or later.
        2. Only URLs that were offered come out.
        3. Each comes out once.
    `unseen` is only a hint: it may let a seen URL pass, and never holds back a new one, nor, where depths are kept, one that
    was met only at a greater depth.
    """

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        """Those of `urls`, met at this depth, that may be new or nearer than before, in order. Changes nothing."""

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Check and put: those of `urls` that are new, in order, each once."""


class ContentIndex(Protocol):
    """Remembers document digests.

    Promise: the first URL given for a digest is the answer for every later one; an answer is never a URL
    whose bytes differ.
    """

    def first(self, digest: str, url: str) -> str:
        """Empty if `digest` is new (it now belongs to `url`), otherwise the URL that it belongs to."""


#: Bits in which the fingerprints of near-duplicates differ at the most (Manku et al., section 5.1.1).
THRESHOLD = 3


def distance(one: int, other: int) -> int:
    """In how many bits two fingerprints differ."""
    return (one ^ other).bit_count()


class FingerprintIndex(Protocol):
    """Remembers fingerprints of texts, as many as it is told to.

    Promises:
        1. An answer is a URL whose fingerprint differs in at most three bits, and that was given with it before.
        2. A fingerprint that is near to one that is still remembered is never new.
        3. A fingerprint near to another is not remembered itself, so that likeness does not drift from page to page.
    """

    def near(self, fingerprint: int, url: str) -> str:
        """Empty if nothing near to `fingerprint` is remembered (it now is, for `url`), otherwise the URL of what is."""


@runtime_checkable
class LateSeenSet(Protocol):
    """A seen set whose answers may come later: new URLs that `offer` does not return at once come out of `drain`.

    Promises: the three of `SeenSet`, over what `offer` and `drain` return together, and:
        4. When `drain` returns nothing after `settle`, every new URL that was offered has come out.
    URLs that `drain` returned count as received at the next call of any method; after a kill before that, they come
    again.
    """

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        """Those of `urls` that may be new, in order; depths are not kept. Changes nothing."""

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Check and put. Those of `urls` that are already known to be new, in order, each once; the rest comes later."""

    def drain(self, most: int = 1_000) -> list[str]:
        """Up to `most` URLs that were offered earlier and are new, in the order of their offers."""

    async def settle(self) -> None:
        """Decide everything that was offered so far."""
