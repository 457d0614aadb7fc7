"""Conformance suites for protocol modules and resolvers: run them over an implementation of your own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from gossamer.fetcher.contract import Endpoint, ProtocolModule, Resolver
from gossamer.values.errors import AddressRefused, ResolutionFailed
from gossamer.values.outcome import Outcome
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
