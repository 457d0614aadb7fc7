"""Every keeper of ours, and one as an outside package would write it, keeps the promises of `storage.archive.contract`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.agents.digests import AgentDigests
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.engine.files import AppendFile, LastWrites
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import ORDERS, PolitenessSheet, ProcessorOrders
from gossamer.storage.archive.contract import Keeper
from gossamer.storage.contract import DIGESTS, Space
from gossamer.storage.ledger.contract import Group
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.logs import LOG_PATH
from gossamer.storage.mailbox.mailbox import Mailbox
from gossamer.storage.recovery import restore
from gossamer.storage.tables.log import JsonLog, JsonLogSheet, TableLog, TableLogSheet
from gossamer.testing.clock import FakeClock
from gossamer.testing.storage import check_keeper
from gossamer.values.agents import claim_of, unpacked
from gossamer.values.task import Task
from gossamer.values.visit import Delay, Record

pytestmark = pytest.mark.stores

#: Seconds of the first delay that the suite orders: none is the usual delay of a host.
FIRST_ORDER = 10

SPACE = Space("titles", host_bytes=64 << 20)


class Titles:
    """Keeps each visit in a file of its own and in a space."""

    def __init__(self, directory: Path, ledger: RocksLedger) -> None:
        ledger.spaces.open(SPACE)
        self.directory = directory
        self.file: AppendFile | None = None
        self.last = LastWrites()
        self.written = False

    def stage(self, records: Sequence[Record], group: Group) -> None:
        self.last.begin()
        if not records:
            return
        if self.file is None:
            self.file = AppendFile(self.directory / "titles.jsonl", fresh=False)
        self.last.about_to(self.file)
        for one in records:
            self.file.append(msgspec.json.encode(one.visit.url) + b"\n")
            group.put(SPACE, one.visit.task.host, one.visit.url.encode()[:512], b"")
        self.written = True

    def committed(self, ends: Mapping[str, int]) -> None:
        pass

    def take_back(self) -> None:
        self.last.take_back()
        self.written = False

    def ends(self) -> Mapping[str, int]:
        written, self.written = self.written, False
        return {"titles.jsonl": self.file.end} if self.file is not None and written else {}

    def files(self) -> Sequence[str]:
        return ("titles*",)


class DoublesWhatFailed(Titles):
    """Forgets to take back."""

    def take_back(self) -> None:
        self.written = False


class LosesWhatIsCut(Titles):
    """Does not say where its file ends."""

    def ends(self) -> Mapping[str, int]:
        return {}


class LeavesWhatWasTorn(Titles):
    """Does not say which files are its own."""

    def files(self) -> Sequence[str]:
        return ()


class Ordering(ProcessorOrders):
    """The keeper of orders, as it is where each visit carries one: a delay for a host of its own, told apart by its length."""

    def __init__(self, ledger: RocksLedger, urls: list[str]) -> None:
        """`urls` grows by the URL of each visit that an order was put on: its place says the delay."""
        super().__init__()
        self.urls = urls
        self.ledger = ledger
        self.politeness = HostPoliteness(PolitenessSheet(delay=1.0))
        self.politeness.clock = FakeClock()
        self.begun: set[str] = set()

    def stage(self, records: Sequence[Record], group: Group) -> None:
        super().stage([self.with_order(record) for record in records], group)

    def with_order(self, record: Record) -> Record:
        number = len(self.urls)
        self.urls.append(record.visit.url)
        order = Delay(f"h{number}.test", FIRST_ORDER + number)
        return Record(msgspec.structs.replace(record.visit, orders=(order,)), record.location)

    def obeyed(self, number: int) -> bool:
        """Whether politeness goes by the order of this number."""
        host = f"h{number}.test"
        if host not in self.begun:
            self.begun.add(host)
            self.politeness.put(host, "")
            self.politeness.begin(Task(f"http://{host}/", host), "", 0.0)
        self.politeness.put(host, "")
        return self.politeness.delay(host) == FIRST_ORDER + number


class Claiming(AgentDigests):
    """The keeper of digests of an agent that has all digests, as it is where no two visits have the same bytes."""

    def __init__(self, ledger: RocksLedger, numbers: Iterator[int]) -> None:
        super().__init__()
        self.ledger = ledger
        outbox = Mailbox()
        outbox.ledger, outbox.designation = ledger, RingDesignation(RingSheet(members=("agent-00",)))
        self.outbox = outbox
        self.numbers = numbers

    def stage(self, records: Sequence[Record], group: Group) -> None:
        super().stage([self.with_digest(record) for record in records], group)

    def with_digest(self, record: Record) -> Record:
        return Record(msgspec.structs.replace(record.visit, digest=f"{next(self.numbers):032}"), record.location)


class Opener:
    """A ledger and a keeper in one crawl directory, again and again."""

    def __init__(self, directory: Path, make: Callable[[Path, RocksLedger], Any]) -> None:
        self.directory = directory
        self.make = make
        self.ledger: RocksLedger | None = None

    def __call__(self) -> tuple[RocksLedger, Keeper]:
        if self.ledger is not None:
            self.ledger.abandon()
        self.ledger = RocksLedger(LedgerSheet(directory=str(self.directory)))
        self.ledger.open()
        keeper: Keeper = self.make(self.directory, self.ledger)
        assert isinstance(keeper, Keeper)
        restore(self.directory, self.ledger.committed_ends(), further=keeper.files())
        return self.ledger, keeper

    def lines(self, pattern: str) -> list[Any]:
        paths = sorted(self.directory.glob(pattern))
        return [msgspec.json.decode(line) for path in paths for line in path.read_bytes().splitlines()]


def kept_titles(opener: Opener) -> list[str]:
    assert opener.ledger is not None
    found: list[str] = opener.lines("titles.jsonl")
    spaced = [key.decode() for host in ("a.test",) for key, _ in opener.ledger.spaces.scan(SPACE, host)]
    assert sorted(set(found)) == sorted(spaced), "file and space of one keeper disagree"
    return found


def test_a_keeper_of_an_outside_package(tmp_path: Path) -> None:
    opener = Opener(tmp_path, Titles)
    check_keeper(opener, tmp_path, lambda: kept_titles(opener))
    assert opener.ledger is not None
    opener.ledger.close()


@pytest.mark.parametrize("broken", [DoublesWhatFailed, LosesWhatIsCut, LeavesWhatWasTorn])
def test_the_suite_finds_a_keeper_that_breaks_its_promises(tmp_path: Path, broken: type[Titles]) -> None:
    opener = Opener(tmp_path, broken)
    with pytest.raises(AssertionError):
        check_keeper(opener, tmp_path, lambda: kept_titles(opener))
    assert opener.ledger is not None
    opener.ledger.close()


def test_json_log(tmp_path: Path) -> None:
    opener = Opener(tmp_path, lambda folder, ledger: JsonLog(JsonLogSheet(directory=str(folder))))
    check_keeper(opener, tmp_path, lambda: pages(opener, LOG_PATH))
    assert opener.ledger is not None
    opener.ledger.close()


@pytest.mark.parametrize("segment_bytes", [1, 1_000, 1 << 20])
@pytest.mark.parametrize("where", ["state/agent-00/rows/pages-*.jsonl", LOG_PATH])
def test_table_log(tmp_path: Path, segment_bytes: int, where: str) -> None:
    sheet = TableLogSheet(directory=str(tmp_path), segment_bytes=segment_bytes)
    opener = Opener(tmp_path, lambda folder, ledger: TableLog(sheet))
    check_keeper(opener, tmp_path, lambda: pages(opener, where))
    assert opener.ledger is not None
    opener.ledger.close()


def test_processor_orders(tmp_path: Path, run: Any) -> None:
    urls: list[str] = []
    made: list[Ordering] = []

    def make(folder: Path, ledger: RocksLedger) -> Ordering:
        made.append(Ordering(ledger, urls))
        run(made[-1].start())
        return made[-1]

    def kept() -> list[str]:
        assert opener.ledger is not None
        kept = sorted(int(key.split()[2]) - FIRST_ORDER for key, _ in opener.ledger.spaces.scan(ORDERS, None))
        assert kept == [number for number in range(len(urls)) if made[-1].obeyed(number)], "what is kept is not obeyed"
        return [urls[number] for number in kept]

    opener = Opener(tmp_path, make)
    check_keeper(opener, tmp_path, kept)
    assert opener.ledger is not None
    opener.ledger.close()


def test_agent_digests(tmp_path: Path, run: Any) -> None:
    numbers = count()

    def make(folder: Path, ledger: RocksLedger) -> Claiming:
        keeper = Claiming(ledger, numbers)
        run(keeper.start())
        return keeper

    def kept() -> list[str]:
        assert opener.ledger is not None
        return [unpacked(value).url for _, value in opener.ledger.spaces.walk(DIGESTS)]

    opener = Opener(tmp_path, make)
    check_keeper(opener, tmp_path, kept, lambda one: claim_of(one) is not None)
    assert opener.ledger is not None
    opener.ledger.close()


def pages(opener: Opener, pattern: str) -> list[str]:
    return [row["url"] for row in opener.lines(pattern) if row["event"] == "page"]
