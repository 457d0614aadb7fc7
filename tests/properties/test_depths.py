"""Depths against a model in memory: the known depth of a URL is the least that it was met at in a group that was kept."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.seen import DEEPEST
from gossamer.values.task import Task

URLS = [f"http://h{n % 3}.test/{n}" for n in range(8)]
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

#: Also depths at which the table in front, and the store, have their bounds.
DEPTHS = st.sampled_from([0, 1, 2, 3, 254, 255, 256, 257, DEEPEST - 1, DEEPEST])
TASKS = st.lists(st.builds(lambda url, depth: Task(url, "h.test", depth), st.sampled_from(URLS), DEPTHS), max_size=9)


class Failed(Exception):
    """A group that is not to be kept."""


def meet(known: dict[str, int], tasks: list[Task]) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """What a meeting is to say, by a plain dictionary."""
    least: dict[str, int] = {}
    for task in tasks:
        least[task.url] = min(task.depth, least.get(task.url, task.depth))
    new = [(url, depth) for url, depth in least.items() if url not in known]
    nearer = [(url, depth) for url, depth in least.items() if depth < known.get(url, 0)]
    known.update(new)
    known.update(nearer)
    return new, nearer


@settings(max_examples=60, deadline=None)
@given(
    groups=st.lists(st.tuples(st.lists(TASKS, max_size=3), st.sampled_from(["kept", "failed", "killed after"]))),
    asked=st.tuples(st.lists(st.sampled_from(URLS), unique=True), DEPTHS),
)
def test_the_known_depth_is_the_least_that_was_met(
    groups: list[tuple[list[list[Task]], str]], asked: tuple[list[str], int]
) -> None:
    known: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="gossamer-", dir=MEMORY) as folder:
        ledger = RocksLedger(LedgerSheet(directory=folder, depth=DEEPEST, recent=3, cache=1 << 20, buffers=1 << 20))
        ledger.open()
        for meetings, end in groups:
            urls, depth = asked
            hinted = ledger.seen.unseen(urls, depth)
            assert [url for url in urls if url not in known or depth < known[url]] == hinted
            then = dict(known)
            try:
                with ledger.group() as group:
                    for tasks in meetings:
                        meeting = group.meet(tasks)
                        found = [[(task.url, task.depth) for task in part] for part in (meeting.new, meeting.nearer)]
                        assert tuple(found) == meet(then, tasks)
                    if end == "failed":
                        raise Failed
            except Failed:
                continue
            known = then
            if end == "killed after":
                ledger.abandon()
                ledger.open()
            assert ledger.depth_of(URLS) == [known.get(url) for url in URLS]
        ledger.close()


@pytest.mark.parametrize("depth", [DEEPEST + 1, 10**9])
def test_what_is_deeper_than_can_be_kept_is_kept_as_the_deepest(tmp_path: Path, depth: int) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path), depth=DEEPEST))
    ledger.open()
    for expected in (1, 0):
        with ledger.group() as group:
            assert len(group.meet([Task(URLS[0], "h.test", depth)]).new) == expected
    assert ledger.depth_of(URLS[:1]) == [DEEPEST]
    ledger.close()
