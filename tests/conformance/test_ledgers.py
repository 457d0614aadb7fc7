"""The ledger keeps the promises of `storage.ledger.contract` and `storage.seen.contract`, whatever bounds its memory."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gossamer.labs.diverse import DiverseQueues, DiverseQueuesSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerContents, LedgerFrontier, LedgerSeen
from gossamer.testing.clock import FakeClock
from gossamer.testing.ledger import check_depths, check_ledger, check_spaces, check_task_queues
from gossamer.testing.storage import check_content_index, check_seen_set

pytestmark = pytest.mark.stores

BOUNDS = {
    "tight": {"held": 3, "turn": 5, "buffered": 4, "refill": 2, "recent": 4},
    "no buffers": {"held": 1, "turn": 1, "buffered": 0, "refill": 1, "recent": 1},
    "default": {},
}


class Opener:
    """Opens a ledger again and again, without closing it properly."""

    def __init__(self, sheet: LedgerSheet) -> None:
        self.sheet = sheet
        self.ledger: RocksLedger | None = None

    def __call__(self) -> tuple[RocksLedger, LedgerFrontier]:
        self.abandon()
        self.ledger = RocksLedger(self.sheet)
        self.ledger.open()
        queues = LedgerFrontier()
        queues.ledger = self.ledger
        return self.ledger, queues

    def abandon(self) -> None:
        if self.ledger is not None:
            self.ledger.abandon()


@pytest.fixture(params=BOUNDS.values(), ids=BOUNDS.keys())
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(LedgerSheet(directory=str(tmp_path), **request.param))
    yield opener
    opener.abandon()


def test_ledger(opener: Opener) -> None:
    check_ledger(opener)


def test_spaces(opener: Opener) -> None:
    check_spaces(lambda: opener()[0])


def test_task_queues(opener: Opener) -> None:
    check_task_queues(opener, hosts=12, tasks=20)


@pytest.mark.parametrize("threshold", [0.25, 1.0, None])
def test_diverse_queues(threshold: float | None, tmp_path: Path) -> None:
    opener = Opener(LedgerSheet(directory=str(tmp_path)))

    def reopen() -> tuple[RocksLedger, DiverseQueues]:
        queues = DiverseQueues(DiverseQueuesSheet(page=50 if threshold is None else 20, threshold=threshold))
        queues.ledger, queues.behind = opener()
        queues.clock = FakeClock()
        return queues.ledger, queues

    check_task_queues(reopen, hosts=12, tasks=20)
    opener.abandon()


def test_depths(opener: Opener) -> None:
    opener.sheet = msgspec.structs.replace(opener.sheet, depth=9)
    check_depths(opener)


def test_ledger_contents(opener: Opener) -> None:
    contents = LedgerContents()
    contents.ledger, _ = opener()
    check_content_index(contents)


@pytest.mark.parametrize("depths", [False, True])
def test_ledger_seen(opener: Opener, depths: bool) -> None:
    opener.sheet = msgspec.structs.replace(opener.sheet, depth=9 if depths else None)
    ledger, _ = opener()
    seen = LedgerSeen()
    seen.ledger = ledger
    check_seen_set(seen)
