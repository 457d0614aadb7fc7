"""Conformance suites for parts that bring pages: protocol modules, resolvers, and sources and runtimes of mobile crawlers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from gossamer.fetcher.contract import Endpoint, ProtocolModule, Resolver
from gossamer.mobile.contract import MAX_FRAME, CrawlerStanding, PageSource, RuntimeLink, RuntimeRefused, Withheld
from gossamer.values.errors import AddressRefused, ResolutionFailed
from gossamer.values.outcome import DOCUMENTS, Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response


class FetchCase(msgspec.Struct, frozen=True):
    """A URL and the expected result."""

    url: str
    outcome: Outcome
    content: bytes | None = None
    """The bytes of the document without content coding; None if they are not compared."""


async def check_protocol_module(
    module: ProtocolModule, cases: Sequence[FetchCase], *, cap: int, silent: str, asked: Callable[[], int]
) -> None:
    """Check that a protocol module keeps its promises.

    Args:
        module: started, with its providers set.
        cases: URLs of the scheme, with at least one for each outcome that the scheme can have.
        cap: bytes of a body that the module keeps at most.
        silent: a URL whose server accepts a request and never answers.
        asked: returns how many requests the server has seen.
    """
    for case in cases:
        response = await _fetch(module, case.url)
        assert response.outcome == case.outcome, (
            f"{case.url}: {response.outcome} ({response.error}), not {case.outcome}"
        )
        assert case.content is None or response.content == case.content, (
            f"{case.url}: the bytes are not those that were served"
        )
        assert max(len(response.body), len(response.content)) <= cap, f"{case.url}: more than {cap} bytes kept"
        assert min(response.started, response.elapsed) >= 0, f"{case.url}: the response has no timings"

    before = asked()
    redirects = [case.url for case in cases if case.outcome is Outcome.REDIRECT]
    for url in redirects:
        await _fetch(module, url)
    assert asked() == before + len(redirects), "a redirect was followed: redirects are answers, not orders"

    waiting = asyncio.ensure_future(module.fetch(_task(silent)))
    for _ in range(100_000):  # loopback needs some turns of the loop, and a sleep would need a guess
        if asked() > before + len(redirects):
            break
        await asyncio.sleep(0)
    else:
        raise AssertionError("the silent server was not asked")
    waiting.cancel()
    try:
        await waiting
    except asyncio.CancelledError:
        pass
    else:
        raise AssertionError("a cancelled fetch returned")
    together = await asyncio.gather(*(_fetch(module, case.url) for case in cases))
    assert [r.outcome for r in together] == [c.outcome for c in cases], (
        "fetches at once or after a cancelled one differ"
    )


def _task(url: str) -> Task:
    return Task(url, host="host")


async def _fetch(module: ProtocolModule, url: str) -> Response:
    try:
        return await module.fetch(_task(url))
    except Exception as error:
        raise AssertionError(f"{url} raised {error!r}: nothing that a server does may raise") from error


async def check_resolver(
    resolver: Resolver,
    *,
    known: tuple[str, int],
    endpoint: Endpoint,
    unknown: tuple[str, int],
    refused: Sequence[tuple[str, int]],
    lookups: Callable[[], int],
) -> None:
    """Check that a resolver keeps its promises.

    Args:
        resolver: started, with its providers set.
        known: a host and port, not asked for before, that resolve to `endpoint` after at least one turn of the loop.
        endpoint: the endpoint of `known`.
        unknown: a host and port without an address.
        refused: hosts and ports whose addresses the crawl must not talk to.
        lookups: returns how many look-ups there have been.
    """
    before = lookups()
    first = asyncio.ensure_future(resolver.resolve(*known))
    others = [asyncio.ensure_future(resolver.resolve(*known)) for _ in range(20)]
    await asyncio.sleep(0)
    first.cancel()
    answers = await asyncio.gather(*others)
    assert set(answers) == {endpoint}, f"{known} leads to {set(answers)}, not {endpoint}"
    assert lookups() == before + 1, f"{lookups() - before} look-ups for equal questions at once"

    for _ in range(2):
        await _raises(ResolutionFailed, resolver.resolve(*unknown), unknown)
        for question in refused:
            await _raises(AddressRefused, resolver.resolve(*question), question)
    assert await resolver.resolve(*known) == endpoint, "an answer changed after failures"


async def _raises(kind: type[Exception], asking: Awaitable[Endpoint], question: tuple[str, int]) -> None:
    try:
        answer = await asking
    except kind:
        return
    raise AssertionError(f"{question} was answered by {answer}, not by {kind.__name__}")


#: Paths that a stranger may write into a link, canonical as far as a URL can be. None may raise, and none may lead out.
HOSTILE_PATHS = (
    *("/..", "/../", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd"),
    *("/%2e%2e%2fetc%2fpasswd", "/..%5c..%5cetc", "/a%5c..%5cb", "/%00", "/index.html%00.png", "/%0d%0aX:y", "/%ff%fe"),
    *("/%c0%ae%c0%ae/", "/%252e%252e/", "//", "///etc/passwd", "/a//b", "/./", "/.", "/%2e", "/%2f", "/%", "/%zz"),
    *("/" + "a" * 5_000, "/a" * 500),
    *("/~root/", "/?", "/?../..", "/;a=b", "/%e2%80%ae", "/aux.", "/con", "/c:/", "/file:///etc/passwd"),
)


def check_page_source(make: Callable[[int], PageSource], page: str, directory: str, missing: str) -> None:
    """Check that a source keeps the promises of `mobile.contract.PageSource`.

    Args:
        make: returns a new source with this limit of bytes for one document.
        page: URL of a document of at least 32 bytes, which the source serves.
        directory: URL that the source redirects.
        missing: URL that the source does not have, on the host of `page`.
    """
    source = make(1 << 20)
    try:
        found = _answered(source, page)
        assert found.outcome is Outcome.OK and found.status == 200, f"{page}: {found.outcome} {found.status}"
        assert len(found.content) >= 32, f"{page} has {len(found.content)} bytes: give the suite a longer one"
        assert found.mime, "promise 3: a document names its media type"
        assert not found.cut, "promise 2: a whole document says that it was cut"
        moved = _answered(source, directory)
        assert moved.outcome is Outcome.REDIRECT and moved.header("location"), "promise 4: a redirect has a location"
        gone = source.answer(missing)
        has_document = isinstance(gone, Response) and gone.outcome in DOCUMENTS
        assert not has_document, f"promise 1: {missing} is not there, and has a document"
        for response in (found, moved):
            assert all(name == name.lower() for name, _ in response.headers), (
                "promise 3: header names are in lower case"
            )
        again = _answered(source, page)
        assert again.content == found.content and again.outcome is found.outcome, (
            "promise 5: equal questions, equal answers"
        )
        assert _answered(source, f"{page}#part").content == found.content, "promise 5: a fragment does not matter"
        origin = "/".join(page.split("/")[:3])
        for path in HOSTILE_PATHS:
            answer = source.answer(origin + path)
            assert isinstance(answer, Response | Withheld), f"promise 1: {path!r} has no answer"
            if isinstance(answer, Withheld):
                assert answer.reason, f"promise 1: {path!r} is refused without a name"
            elif answer.outcome in DOCUMENTS:
                assert b"root:" not in answer.content, f"{path!r} led out of what is served"
        assert _answered(source, page).outcome is Outcome.OK, "promise 5: what was asked before does not matter"
    finally:
        source.close()
    source = make(16)
    try:
        cut = _answered(source, page)
        assert cut.outcome is Outcome.TRUNCATED and cut.cut == "length", "promise 2: a document that was cut says so"
        assert len(cut.content) <= 16, f"promise 2: {len(cut.content)} bytes where 16 is the limit"
    finally:
        source.close()


def _answered(source: PageSource, url: str) -> Response:
    answer = source.answer(url)
    assert isinstance(answer, Response), f"{url} is refused: {answer}"
    return answer


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
    """Check that a link keeps the promises of `mobile.contract.RuntimeLink`.

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
    await _check_unknown(link, "nobody", "this one was not sent")
    for identity in NO_IDENTITIES:
        assert await _refusal(link, identity, b"") == "invalid", f"{identity!r} is not an identity"
    for data in (b"", b"GSMC", b"<html>", b"\0" * 1000):
        assert await _refusal(link, "damaged", data) == "invalid", f"{data[:10]!r} is not a crawler"
    assert await _refusal(link, "version", b"GSMC\xff") == "version"
    found = await link.batch("damaged", 0, 0.0)
    assert isinstance(found, CrawlerStanding) and found.state == "unknown", "what was refused is kept"
    for _ in range(2):
        standing = await link.send("journey-1", crawler)
        assert standing.state in ("waiting", "running", "finished"), f"promise 2: sent again, it is {standing.state}"
    assert await _refusal(link, "journey-1", other) == "other_crawler", "promise 2: one identity, two crawlers"
    early = await link.batch("journey-1", 10_000, 0.0)
    assert isinstance(early, CrawlerStanding), "promise 3: a batch that was never made"
    first = await _had(link, "journey-1", 0)
    if stranger is not None:
        await _check_unknown(stranger, "journey-1", "promise 7: another's is known")
        assert (await stranger.send("journey-1", crawler)).state != "unknown", (
            "promise 7: identities are a sender's own"
        )
        await stranger.cancel("journey-1")
    if again is not None:
        link = await again()
    assert await _had(link, "journey-1", 0) == first, "promise 3: a batch is not what it was when it was had first"
    frames = await _check_batches(link, first)
    for late in (
        await link.send("journey-1", crawler),
        await link.acknowledge("journey-1", len(frames) + 10),
        await link.cancel("journey-1"),
        await link.send("journey-1", crawler),
        await link.batch("journey-1", len(frames), 60.0),
    ):
        assert isinstance(late, CrawlerStanding) and late.state == "finished", "promise 2: it begins again"
        assert late.batches == late.acknowledged == len(frames), f"promise 5: {late.batches} of {len(frames)}"
    assert await _refusal(link, "journey-1", other) == "other_crawler", "promise 2: holds after the end, too"
    await link.send("journey-2", crawler)
    for _ in range(2):
        standing = await link.cancel("journey-2")
        assert (standing.state, standing.reason) == ("failed", "cancelled"), f"{standing} after it was cancelled"
    standing = await link.send("journey-2", crawler)
    assert (standing.state, standing.reason) == ("failed", "cancelled"), "promise 2: a cancelled one runs again"
    found = await link.batch("journey-2", 0, 0.0)
    assert isinstance(found, CrawlerStanding) and found.reason == "cancelled", "a cancelled one keeps its results"
    return frames


async def _check_unknown(link: RuntimeLink, identity: str, promise: str) -> None:
    for standing in (
        await link.batch(identity, 0, 0.0),
        await link.acknowledge(identity, 10),
        await link.cancel(identity),
    ):
        assert isinstance(standing, CrawlerStanding) and standing.state == "unknown", promise


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
