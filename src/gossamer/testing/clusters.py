"""Conformance suite for clusters: what runs the agents of a crawl, on this machine or on others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from signal import SIGKILL
from typing import Protocol

from gossamer.agents.contract import Cluster, Placed
from gossamer.testing.clock import HUNG_AFTER

#: Seconds between two questions to an agent that begins.
_PAUSE = 0.05


class TrialCrawl(Protocol):
    """A crawl that is about to begin, whose agents stay at work until they are told to stop."""

    agents: Sequence[str]
    """The names of two agents."""

    async def life(self, agent: str) -> str:
        """The name of an agent's present life, by its own word, as its supervisor asks it; empty where it does not answer."""
        ...

    async def stop(self, agent: str) -> None:
        """Tell an agent to end in order."""
        ...

    def has_told_its_end(self, agent: str) -> bool:
        """Whether the crawl's state says that it has ended in order."""
        ...


async def check_cluster(make: Callable[[], Cluster], crawl: TrialCrawl, say: Callable[[str], None] = print) -> None:
    """Check that a cluster keeps the promises of `agents.contract.Cluster` and `Placed`.

    Args:
        make: returns a new cluster of the crawl, which is made while no other one is open.
        crawl: what is to run; its orders are written.
        say: takes what processes tell people.
    """
    stays, dies = crawl.agents
    async with asyncio.timeout(HUNG_AFTER):
        cluster = make()
        cluster.prepare([stays])
        assert not await cluster.living(crawl.agents), "promise 2: processes are living that were never placed"
        placed = {name: await cluster.place(name) for name in crawl.agents}
        assert all(one.is_alive for one in placed.values()), "what was placed counts as dead"
        lives = {name: await _begun(crawl.life, name) for name in crawl.agents}
        homes = [name for node in await cluster.nodes() for name in node.processes]
        assert sorted(homes) == sorted(crawl.agents), f"nodes: each process is at one node, and not {homes}"

        ends = {name: asyncio.create_task(one.ended(say)) for name, one in placed.items()}
        placed[dies].kill()
        placed[dies].kill()
        assert await ends[dies] == -SIGKILL, "Placed.ended: one that was killed ends by SIGKILL"
        await _check_gone(placed[dies], crawl, dies)
        assert list(await cluster.living(crawl.agents)) == [stays], "a process that was killed counts as living"

        ends[dies] = asyncio.create_task((await cluster.place(dies)).ended(say))
        again = await _begun(crawl.life, dies)
        assert again != lives[dies], "promise 1: the name has the life that was killed"
        await cluster.close()
        await _check_next(make(), crawl, {stays: lives[stays], dies: again}, say)
        # The first supervisor is gone by now; where it is the parent of processes, it is told of their ends all the same.
        _, waiting = await asyncio.wait(ends.values(), timeout=_PAUSE)
        for task in waiting:
            task.cancel()


async def _check_next(cluster: Cluster, crawl: TrialCrawl, lives: dict[str, str], say: Callable[[str], None]) -> None:
    """Check the cluster of the next supervisor."""
    found = await cluster.living(crawl.agents)
    assert found.keys() == lives.keys(), f"promise 2: the next supervisor finds only {sorted(found)}"
    for name in crawl.agents:
        assert await _begun(crawl.life, name) == lives[name], f"promise 2: {name} was begun again by its cluster"
        await crawl.stop(name)
    for name in crawl.agents:
        assert await found[name].ended(say) == 0, "Placed.ended: one that was told to stop ends with 0"
        assert crawl.has_told_its_end(name), f"Placed.ended: {name} has ended in order, and nothing says how"
        await _check_gone(found[name], crawl, name)
        found[name].kill()  # safe at any time
    assert not await cluster.living(crawl.agents), "processes that have ended count as living"
    await cluster.close()


async def _begun(life: Callable[[str], Awaitable[str]], name: str) -> str:
    """The life of an agent, once it answers."""
    while not (found := await life(name)):
        await asyncio.sleep(_PAUSE)
    return found


async def _check_gone(placed: Placed, crawl: TrialCrawl, name: str) -> None:
    assert not placed.is_alive, f"{name} has ended, and counts as alive"
    assert not await crawl.life(name), f"Placed, promise 1: {name} has ended, and something answers in its place"
