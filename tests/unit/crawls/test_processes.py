"""A child that keeps dying ends its crawl with a status that is documented."""

import asyncio
import signal
from pathlib import Path

import pytest

from gossamer.crawls.processes import MAX_DEATHS, Fleet
from gossamer.engine.errors import ComponentFailed, WiringError
from gossamer.engine.planning import Catalog
from gossamer.engine.wiring import Wiring


class Dying(Fleet):
    """A fleet whose one child ends with a status of the test's own, at once and every time."""

    def __init__(self, status: int, folder: Path) -> None:
        self.said: list[str] = []
        super().__init__(Wiring(), Catalog(), str(folder), folder, self.said.append)
        self._names = ["parse"]
        self._status = status

    async def _spawn(self, name: str, path: Path) -> None:
        self.children[name] = await asyncio.create_subprocess_exec("sh", "-c", f"exit {self._status}")


async def _lived(fleet: Fleet) -> None:
    await fleet.start()
    try:
        await fleet.watch_over(asyncio.Event().wait())
    finally:
        await fleet.stop()


def test_five_deaths_of_a_child_end_incomplete(tmp_path: Path) -> None:
    fleet = Dying(9, tmp_path)
    with pytest.raises(ComponentFailed, match=f"process 'parse' died {MAX_DEATHS} times within 10 s") as caught:
        asyncio.run(_lived(fleet))
    assert caught.value.exit_code == 4
    assert len(fleet.said) == MAX_DEATHS - 1


def test_a_child_that_cannot_run_its_wiring_ends_as_wrong_configuration(tmp_path: Path) -> None:
    with pytest.raises(WiringError) as caught:
        asyncio.run(_lived(Dying(2, tmp_path)))
    assert caught.value.exit_code == 2


def test_a_child_that_is_starting_is_not_ended_for_the_silence_of_the_one_before(tmp_path: Path) -> None:
    async def ended() -> int:
        fleet = Dying(0, tmp_path)
        fleet.children["parse"] = child = await asyncio.create_subprocess_exec("sleep", "60")
        fleet.end("parse", f"{child.pid - 1}-before")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.wait(), 0.1)
        fleet.end("parse", f"{child.pid}-now")
        return await child.wait()

    assert asyncio.run(ended()) == -signal.SIGKILL
