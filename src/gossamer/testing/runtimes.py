"""Conformance suite for links to runtimes of mobile crawlers: run it over a link of your own.

Each check is one promise of `contracts.runtimes`. A broken promise raises an AssertionError that names it.
"""

from collections.abc import Awaitable, Callable

from gossamer.contracts.runtimes import MAX_FRAME, CrawlerStanding, RuntimeLink, RuntimeRefused

#: Seconds that the suite waits for a batch, in steps.
PATIENCE, _STEP = 120.0, 5.0

#: Identities that are none: what a URL, a path or a terminal would read otherwise.
NO_IDENTITIES = ("", ".", "..", "../x", "a/b", "a b", "a\n", "é", "%2e", "-a", "a" * 65)


async def check_runtime_link(
    link: RuntimeLink,
    crawler: bytes,
    other: bytes,
    *,
    again: Callable[[], Awaitable[RuntimeLink]] | None = None,
    stranger: RuntimeLink | None = None,
) -> list[bytes]:
    """Check that a link keeps the promises of `contracts.runtimes.RuntimeLink`.

    Args:
        link: a link to a runtime that has no crawler of this sender.
        crawler: the bytes of a crawler that makes at least three batches.
        other: the bytes of another crawler that could run there.
        again: kills the runtime, starts it again, and returns a link to it.
        stranger: a link of another sender to the same runtime.

    Returns:
        The frames that the crawler made.
    """
    offer = await link.offer()
    assert offer.versions and offer.crawlers > 0, "the offer says neither versions nor how many crawlers it runs"
    await _check_unknown(link)
    await _check_refusals(link)
    await _check_sending(link, crawler, other)
    first = await _had(link, "journey-1", 0)
    if stranger is not None:
        await _check_stranger(stranger, crawler)
    if again is not None:
        link = await again()
    assert await _had(link, "journey-1", 0) == first, "promise 3: a batch is not what it was when it was had first"
    frames = await _check_batches(link, first)
    await _check_ended(link, crawler, other, len(frames))
    await _check_cancelled(link, crawler)
    return frames


async def _check_unknown(link: RuntimeLink) -> None:
    for standing in (
        await link.batch("nobody", 0, 0.0),
        await link.acknowledge("nobody", 3),
        await link.cancel("nobody"),
    ):
        assert isinstance(standing, CrawlerStanding) and standing.state == "unknown", "nobody sent this one"


async def _check_refusals(link: RuntimeLink) -> None:
    for identity in NO_IDENTITIES:
        assert await _refusal(link, identity, b"") == "invalid", f"{identity!r} is not an identity"
    for data in (b"", b"GSMC", b"<html>", b"\0" * 1000):
        assert await _refusal(link, "damaged", data) == "invalid", f"{data[:10]!r} is not a crawler"
    assert await _refusal(link, "version", b"GSMC\xff") == "version"
    found = await link.batch("damaged", 0, 0.0)
    assert isinstance(found, CrawlerStanding) and found.state == "unknown", "what was refused is kept"


async def _check_sending(link: RuntimeLink, crawler: bytes, other: bytes) -> None:
    for _ in range(2):
        standing = await link.send("journey-1", crawler)
        assert standing.state in ("waiting", "running", "finished"), f"promise 2: sent again, it is {standing.state}"
    assert await _refusal(link, "journey-1", other) == "other_crawler", "promise 2: one identity, two crawlers"
    early = await link.batch("journey-1", 10_000, 0.0)
    assert isinstance(early, CrawlerStanding), "promise 3: a batch that was never made"


async def _check_stranger(stranger: RuntimeLink, crawler: bytes) -> None:
    for standing in (
        await stranger.batch("journey-1", 0, 0.0),
        await stranger.acknowledge("journey-1", 10),
        await stranger.cancel("journey-1"),
    ):
        assert isinstance(standing, CrawlerStanding) and standing.state == "unknown", "promise 7: another's is known"
    assert (await stranger.send("journey-1", crawler)).state != "unknown", "promise 7: identities are a sender's own"
    await stranger.cancel("journey-1")


async def _check_batches(link: RuntimeLink, first: bytes) -> list[bytes]:
    """Check that all batches come, each acknowledged before the next."""
    frames = [first]
    while True:
        await link.acknowledge("journey-1", len(frames) - 1)
        gone = await link.batch("journey-1", len(frames) - 1, 0.0)
        assert isinstance(gone, CrawlerStanding), "promise 4: an acknowledged batch is still there"
        assert gone.acknowledged == len(frames), "promise 4: the standing does not say what was acknowledged"
        frame = await _next(link, "journey-1", len(frames))
        if frame is None:
            break
        assert len(frame) <= MAX_FRAME, "promise 8: a frame is too large"
        frames.append(frame)
    assert len(frames) >= 3, f"the crawler made {len(frames)} batches: give the suite a longer one"
    return frames


async def _check_ended(link: RuntimeLink, crawler: bytes, other: bytes, batches: int) -> None:
    for standing in (
        await link.send("journey-1", crawler),
        await link.acknowledge("journey-1", batches + 10),
        await link.cancel("journey-1"),
        await link.send("journey-1", crawler),
        await link.batch("journey-1", batches, 60.0),
    ):
        assert isinstance(standing, CrawlerStanding) and standing.state == "finished", "promise 2: it begins again"
        assert standing.batches == standing.acknowledged == batches, f"promise 5: {standing.batches} of {batches}"
    assert await _refusal(link, "journey-1", other) == "other_crawler", "promise 2: holds after the end, too"


async def _check_cancelled(link: RuntimeLink, crawler: bytes) -> None:
    await link.send("journey-2", crawler)
    for _ in range(2):
        standing = await link.cancel("journey-2")
        assert (standing.state, standing.reason) == ("failed", "cancelled"), f"{standing} after it was cancelled"
    standing = await link.send("journey-2", crawler)
    assert (standing.state, standing.reason) == ("failed", "cancelled"), "promise 2: a cancelled one runs again"
    found = await link.batch("journey-2", 0, 0.0)
    assert isinstance(found, CrawlerStanding) and found.reason == "cancelled", "a cancelled one keeps its results"


async def _had(link: RuntimeLink, identity: str, sequence: int) -> bytes:
    frame = await _next(link, identity, sequence)
    assert frame is not None, f"batch {sequence} of {identity} was never made"
    return frame


async def _next(link: RuntimeLink, identity: str, sequence: int) -> bytes | None:
    """Wait for the batch and return it; None if the crawler has ended without it."""
    for _ in range(int(PATIENCE / _STEP)):
        found = await link.batch(identity, sequence, _STEP)
        if isinstance(found, bytes):
            return found
        assert found.state != "failed", f"{identity} failed: {found.reason} {found.told}"
        if found.has_ended:
            return None
    raise AssertionError(f"promise 4: {identity} made no batch {sequence} within {PATIENCE:g} s")


async def _refusal(link: RuntimeLink, identity: str, data: bytes) -> str:
    try:
        await link.send(identity, data)
    except RuntimeRefused as refused:
        return refused.reason
    return ""
