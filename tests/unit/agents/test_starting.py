"""Processes that are started ahead: they begin by a word, and end with their supervisor."""

import asyncio
from pathlib import Path

from gossamer.agents.supervised import Starter
from gossamer.testing.clock import HUNG_AFTER


def test_a_process_that_was_prepared_begins_by_a_word_and_the_others_end(tmp_path: Path) -> None:
    async def began() -> tuple[int, int, list[int | None]]:
        starter = Starter(tmp_path)
        starter.prepare(["agent-00", "agent-01", "agent-00"])
        prepared = {name: await task for name, task in starter._prepared.items()}
        process = await starter.start("agent-00")
        async with asyncio.timeout(HUNG_AFTER):
            _, told = await process.communicate()
            await starter.close()
        assert b"orders.json" in told, "it looked for what it is to run"
        return process.pid, prepared["agent-00"].pid, [one.returncode for one in prepared.values()]

    begun, prepared, codes = asyncio.run(began())
    assert begun == prepared
    assert None not in codes


def test_a_process_that_waits_ends_with_its_supervisor(tmp_path: Path) -> None:
    async def ended() -> int:
        starter = Starter(tmp_path)
        starter.prepare(["agent-00"])
        process = await starter._prepared["agent-00"]
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(HUNG_AFTER):
            return await process.wait()

    assert asyncio.run(ended()) == 0
