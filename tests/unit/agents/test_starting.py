"""Processes that are started ahead: they begin by a word, and end with their supervisor."""

import asyncio
from pathlib import Path

from gossamer.agents.cluster import LocalCluster
from gossamer.testing.clock import HUNG_AFTER


def test_a_process_that_was_prepared_begins_by_a_word_and_the_others_end(tmp_path: Path) -> None:
    async def began() -> tuple[int, int, list[str], list[int | None]]:
        cluster, said = LocalCluster(tmp_path, tmp_path), list[str]()
        cluster.prepare(["agent-00", "agent-01", "agent-00"])
        prepared = {name: await task for name, task in cluster._prepared.items()}
        placed = await cluster.place("agent-00")
        async with asyncio.timeout(HUNG_AFTER):
            await placed.ended(said.append)
            await cluster.close()
        return placed.number, prepared["agent-00"].pid, said, [one.returncode for one in prepared.values()]

    begun, prepared, said, codes = asyncio.run(began())
    assert begun == prepared
    assert any("orders.json" in line for line in said), "it looked for what it is to run"
    assert None not in codes


def test_a_process_that_waits_ends_with_its_supervisor(tmp_path: Path) -> None:
    async def ended() -> int:
        cluster = LocalCluster(tmp_path, tmp_path)
        cluster.prepare(["agent-00"])
        process = await cluster._prepared["agent-00"]
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(HUNG_AFTER):
            return await process.wait()

    assert asyncio.run(ended()) == 0
