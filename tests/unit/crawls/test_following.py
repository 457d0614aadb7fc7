"""What follows a crawl is never in its way."""

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gossamer.crawls.followers import Following
from gossamer.crawls.options import CrawlOptions
from gossamer.storage.tables.places import FOLLOWING_INDEX


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """This process can open no further file."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_cannot_be_started_is_told_once_and_the_crawl_goes_on(run: Any, tmp_path: Path) -> None:
    (tmp_path / FOLLOWING_INDEX).parent.mkdir(parents=True)
    (tmp_path / FOLLOWING_INDEX).touch()
    told: list[str] = []

    async def body() -> None:
        following = Following(tmp_path, CrawlOptions(), told.append)
        with no_more_files():
            await following.start()
        await following.finish()

    run(body())
    assert len(told) == 1 and "Too many open files" in told[0] and "the next run goes on with it" in told[0]
