"""Of one promise with many values, the suite tries some; all of them are tried where `long` tests are asked for."""

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")


def sampled(values: Iterable[T], every: int) -> list[T | ParameterSet]:
    """Each `every`-th of the values, from the first on; the others are marked `long`."""
    return [pytest.param(one, marks=pytest.mark.long) if at % every else one for at, one in enumerate(values)]
