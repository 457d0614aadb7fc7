"""What all tests share."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest


#: Seconds after which a test that waits for ever is failed: many times what the slowest needs on a busy machine.
PATIENCE = 60


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine to its end, on a loop of its own."""

    async def within(body: Coroutine[Any, Any, Any]) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await body

    return lambda body: asyncio.run(within(body))


@pytest.fixture
def test_data() -> Path:
    """The directory of test data from other projects; the test is skipped where it is not."""
    place = os.environ.get("GOSSAMER_TEST_DATA", "")
    if not place or not Path(place).is_dir():
        pytest.skip("GOSSAMER_TEST_DATA does not name a directory with other projects' test data")
    return Path(place)
