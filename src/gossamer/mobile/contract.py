"""The contracts of mobile crawlers: the link between home and a runtime, and the sources of pages that a runtime serves.
Suites: `gossamer.testing.check_runtime_link`, `check_page_source`.

Place in the flow: home sends a crawler's bytes through a link and takes its results back, batch by batch. A runtime elsewhere is
one end, the one at home another (:mod:`~gossamer.mobile.manager.links`). The crawler manager transfers crawlers and waits for
those that return (Agarwal and others, 3.1). Nothing here reads a crawler or a batch: both are bytes, and their receiver judges
them (:mod:`~gossamer.mobile.wire`).
"""

from typing import Literal, Protocol

import msgspec

from gossamer.values.visit import Response

#: Characters of an identity, from the letters, digits and marks that a URL takes as they are.
IDENTITY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}\Z"

#: Bytes of a frame, packed: a batch that is nearly full when the largest page comes, which has text and elements, too.
MAX_FRAME = 64 << 20
#: Bytes of a crawler as it is sent: preamble, and one frame with its head.
MAX_CRAWLER = MAX_FRAME + 64

#: Seconds that one call of `batch` waits at most, whatever it is asked for.
MAX_WAIT = 60.0

CrawlerState = Literal["waiting", "running", "finished", "failed", "unknown"]
"""Where a crawler stands: it waits for its turn, runs, has come to its end, was ended, or is none that this sender sent."""

FailureReason = Literal[
    "cpu", "memory", "time", "bytes", "crashed", "changed", "restarts", "cancelled", "processors", "invalid"
]
"""By what a crawler was ended: limits of the owner's (processor time, memory, time, bytes of results), its process died, the data
changed while it had to be run again, the runtime died with it too often, home cancelled it, a processor is no longer installed,
or its program cannot be run."""

RefusalReason = Literal[
    "wrong_key", "not_authorized", "protocol", "invalid", "version", "too_large", "hosts", "processors", "other_crawler"
]
"""For what a runtime refuses: it is not the one whose key is known, it does not know the sender, what speaks there is no runtime,
the bytes are no crawler, of a version that it does not know, or too many; none of the seeds' hosts is for this sender; a processor
is not installed; another crawler was sent under this identity."""


class OfferedHost(msgspec.Struct, frozen=True):
    """A host that a runtime has."""

    host: str
    """Name, with the port where URLs have one; empty for every host of an archive, which has no list of them."""
    schemes: tuple[str, ...]
    """Of its URLs, `http` or `https`; URLs of the other scheme are redirected."""


class OfferedProcessor(msgspec.Struct, frozen=True):
    """A processor that programs may name."""

    name: str
    version: str


class RuntimeOffer(msgspec.Struct, frozen=True):
    """A runtime as it describes itself to a sender: its limits, and the crawlers that it takes."""

    versions: tuple[int, ...]
    """Versions of crawlers that it knows (`mobile.wire.agreed_version`)."""
    hosts: tuple[OfferedHost, ...]
    processors: tuple[OfferedProcessor, ...] = ()
    crawlers: int = 1
    """How many of this sender's run at once; more wait."""
    requests: int = 0
    """Requests of one crawler at most; 0 where there is no limit."""
    bytes: int = 0
    """Bytes of documents that one crawler is given at most; 0 where there is no limit."""
    seconds: float = 0.0
    """How long one crawler runs at most; 0 where there is no limit."""
    keeps: float = 0.0
    """Seconds that results are kept after a crawler ended; 0 where they are kept as long as the runtime."""
    software: str = ""
    """Name and version, for people."""


class CrawlerStanding(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a crawler stands at a runtime."""

    state: CrawlerState
    reason: FailureReason | Literal[""] = ""
    """Where it failed: by what."""
    told: str = ""
    """The same in words, for people: strangers wrote them."""
    batches: int = 0
    """Batches that it has made: their sequences lie below this. Where it has finished, that is all of them."""
    acknowledged: int = 0
    """Batches whose sequences lie below this are forgotten."""
    fetched: int = 0
    """Answers that it was given so far."""

    @property
    def has_ended(self) -> bool:
        """Whether it makes no more batches here."""
        return self.state in ("finished", "failed", "unknown")


class RuntimeUnavailable(Exception):
    """Nothing can be said of the call: the runtime is not reachable, too busy, or broke off. Call again later."""


class RuntimeRefused(Exception):
    """The runtime does not do it, and will not later. The reason is the name that it is counted by."""

    def __init__(self, reason: RefusalReason, message: str) -> None:
        super().__init__(message)
        self.reason: RefusalReason = reason


class RuntimeLink(Protocol):
    """Home's end of the link to one runtime, for one sender.

    An identity is opaque text by :data:`IDENTITY_PATTERN` that home gives one journey of one crawler, and never gives again. A
    crawler that is sent a second time, since its first journey is lost or failed, is another journey.

    Promises:
        1. Every call may be made again, at any moment and after any error, and comes to the same.
        2. Sending the same bytes under the same identity again does nothing. Other bytes under it are refused
           (`other_crawler`). This holds after the crawler ended, too, as long as the runtime knows of it.
        3. Sequences count from 0 without a gap. The frame of (identity, sequence) has the same content whenever it is had, even
           if the runtime was killed in between. A crawler whose data changed so that this cannot be kept fails (`changed`).
        4. A frame that was given is kept until it is acknowledged or cancelled, or until the crawler's time has passed. A
           runtime that has no room lets crawlers wait.
        5. A crawler that has finished has made all of its batches, and the last one has the summary. Batches of one that failed can
           be had as those of any other.
        6. `batch` returns within `wait` seconds, and the time that one exchange of messages takes.
        7. Other senders' crawlers are unknown.
        8. No other errors than :class:`RuntimeUnavailable` and :class:`RuntimeRefused` leave a link, whatever the other side does.
           Frames have at most :data:`MAX_FRAME` bytes.
    """

    async def offer(self) -> RuntimeOffer:
        """The description of the runtime.
        Raises RuntimeUnavailable, RuntimeRefused: as they say; so do all of these."""
        ...

    async def send(self, identity: str, crawler: bytes) -> CrawlerStanding:
        """Give the runtime a crawler without results, as `mobile.wire.to_bytes` makes it, of at most :data:`MAX_CRAWLER` bytes,
        for this journey; returns where it stands."""
        ...

    async def batch(self, identity: str, sequence: int, wait: float) -> bytes | CrawlerStanding:
        """A batch, as one zstd frame without a head (`mobile.wire.unpacked`); where it is not there within `wait` seconds, at
        most :data:`MAX_WAIT`, where the crawler stands. 0 asks for what is there now; a crawler that has ended is not waited
        for."""
        ...

    async def acknowledge(self, identity: str, sequence: int) -> CrawlerStanding:
        """Let the runtime forget this batch and all before it: home has committed them. One that was not made yet is not
        acknowledged: all that were made are."""
        ...

    async def cancel(self, identity: str) -> CrawlerStanding:
        """End the crawler, and let the runtime forget its results. One that has finished stays finished."""
        ...


# Sources of pages: files, a local server, a stored crawl. A runtime asks for one URL at a time, after its own rules let it pass.


class Withheld(msgspec.Struct, frozen=True, gc=False):
    """A source's decision not to serve a URL."""

    reason: str
    """Name of the reason, such as `dotfile`. The runtime counts refusals by it."""
    told: str = ""
    """The exact reason, which only the owner of the data sees, never a crawler."""


class PageSource(Protocol):
    """Answers one URL at a time, for any URL.

    Promises:
        1. Every URL has an answer: a response with an outcome, or a refusal with a name. No URL raises an exception.
        2. A document is never longer than the source's limit. If a document was cut, `truncated` is set and `cut` is `length`.
        3. A document names its media type, and header names are in lower case.
        4. A redirect is an answer with a `location`; the source does not follow it.
        5. Equal questions have equal answers, as long as the data stay the same. Fragments and the order of questions
           do not matter.
    """

    def answer(self, url: str) -> Response | Withheld:
        """Return the answer for a canonical URL of http or https."""
        ...

    def close(self) -> None:
        """Release the resources of the source. No question follows."""
        ...
