"""Processors that one test registers."""

import contextlib
from collections.abc import Iterator

from gossamer.api import processors


@contextlib.contextmanager
def own_processors() -> Iterator[None]:
    """Begin without registered processors, and forget those of the block at its end."""
    before, processors._registered[:] = processors._registered[:], []
    try:
        yield
    finally:
        processors._registered[:] = before
