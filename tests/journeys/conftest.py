"""Journeys are tests of whole crawls: `./gossamer dev test` leaves them to `dev test --all` and to whoever names them."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
