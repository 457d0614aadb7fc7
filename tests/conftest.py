"""What every test may use."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from gossamer.testing.clock import HUNG_AFTER

T = TypeVar("T")

# A property holds or does not, however slow the machine is that asks. The suite asks for the same cases each time, so that a
# change breaks it or nothing does; `./gossamer dev properties` asks for new ones, and for many more.
settings.register_profile("gossamer", deadline=None, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile("gossamer")

# A shell starts what it runs in the background, and `nohup` what it runs, with interrupts ignored; programs inherit that, and
# tests that interrupt one would wait in vain. A handler is not inherited: the runner still ignores interrupts, programs do not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda number, frame: None)


#: A file system in memory, and the bytes that must be free there: many machines and containers have a small one.
_MEMORY, _ROOM = Path("/dev/shm"), 2 << 30


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Pytest's folder; in memory for a test that is marked `stores`, and then nothing of it is left.

    Such a test opens a store dozens of times, and kills what has it open. It never cuts the power, so a disk would add nothing but
    its time.
    """
    is_marked = request.node.get_closest_marker("stores") is not None
    if not is_marked or not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _ROOM:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="gossamer-", dir=_MEMORY, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is marked `forks` in a process of its own, if this one is a worker, which holds the whole suite.

    To fork a process costs as much as it has memory: some 30 ms in a worker, 2 ms in a process that knows one test.
    """
    if pyfuncitem.get_closest_marker("forks") is None or "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    with tempfile.TemporaryDirectory(prefix="gossamer-") as folder:
        line = [sys.executable, "-P", "-m", "pytest", "-q", "--basetemp", f"{folder}/test", pyfuncitem.nodeid]
        done = subprocess.run(
            [*line, "-m", "", "-p", "no:cacheprovider"],  # it has been chosen: no marker leaves it out
            cwd=pyfuncitem.config.rootpath,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode or "1 passed" not in done.stdout:
        pytest.fail(f"in a process of its own:\n{done.stdout}{done.stderr}", pytrace=False)
    return True


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, T]], T]:
    """Run a coroutine to its end, on an event loop of its own; no task may be left behind."""

    async def whole(coroutine: Coroutine[Any, Any, T]) -> T:
        async with asyncio.timeout(HUNG_AFTER):
            result = await coroutine
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks were left behind: {left}"
        return result

    return lambda coroutine: asyncio.run(whole(coroutine))


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A folder for sockets: their paths are limited to some 100 bytes, which pytest's own folders may exceed."""
    with tempfile.TemporaryDirectory(prefix="gossamer-") as folder:
        yield Path(folder)


@pytest.fixture
def test_data() -> Path:
    """The directory of test data from other projects; the test is skipped where it is not."""
    place = os.environ.get("GOSSAMER_TEST_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("GOSSAMER_TEST_DATA does not name a directory with other projects' test data")
    return Path(place)
