"""Orders of processors take effect with their commit, and outlive the process."""

import contextlib
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet, ProcessorOrders
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.clock import FakeClock
from gossamer.testing.storage import visit
from gossamer.values.task import Task
from gossamer.values.visit import Block, Delay, Order, Record


class Side:
    """A keeper of orders with its ledger and politeness, as one process has them."""

    def __init__(self, folder: Path, run: Any) -> None:
        self.ledger = RocksLedger(LedgerSheet(directory=str(folder)))
        self.ledger.open()
        self.politeness = HostPoliteness(PolitenessSheet(delay=1.0))
        self.politeness.clock = FakeClock()
        self.keeper = ProcessorOrders()
        self.keeper.ledger, self.keeper.politeness = self.ledger, self.politeness
        run(self.keeper.start())

    def commit(self, *orders: Order) -> None:
        with self.ledger.group() as group:
            self.keeper.stage([Record(msgspec.structs.replace(visit(), orders=orders))], group)
        self.keeper.committed(self.keeper.ends())

    def asked(self, host: str) -> tuple[float, str]:
        """The delay of a host that takes its first turn, and its reason."""
        self.politeness.put(host, "")
        self.politeness.begin(Task(f"http://{host}/", host), "", 0.0)
        self.politeness.put(host, "")
        return self.politeness.delay(host), self.politeness.delay_reason(host)


def test_orders_take_effect_with_their_group_and_survive_a_kill(tmp_path: Path, run: Any) -> None:
    side = Side(tmp_path, run)
    side.commit(Block("Example.ORG."), Delay("slow.test", 30.0), Delay("slow.test", 5.0))
    for _ in range(2):
        assert side.politeness.rule_against("www.example.org") == "example.org"
        assert side.politeness.rule_against("example.com") == ""
        assert side.asked("slow.test") == (30.0, "processor")
        assert side.asked("other.test") == (1.0, "setting")
        side.ledger.abandon()
        side = Side(tmp_path, run)
    assert {name: count for name, count in side.ledger.counters().items() if name.startswith("ordered")} == {
        "ordered:block": 1,
        "ordered:delay": 2,
    }
    side.ledger.close()


def test_an_order_whose_group_fails_has_no_effect(tmp_path: Path, run: Any) -> None:
    side = Side(tmp_path, run)
    ordering = Record(msgspec.structs.replace(visit(), orders=(Block("a.test"),)))
    with contextlib.suppress(ZeroDivisionError), side.ledger.group() as group:
        side.keeper.stage([ordering], group)
        raise ZeroDivisionError
    side.keeper.take_back()
    side.commit(Block("b.test"))
    assert (side.politeness.rule_against("a.test"), side.politeness.rule_against("b.test")) == ("", "b.test")
    side.ledger.close()


@pytest.mark.parametrize(
    "order", [Block(""), Block("http://a.test/"), Block("*"), Delay("a.test", -1.0), Delay("a.test", math.nan)]
)
def test_an_order_that_nobody_could_carry_out_is_counted_and_left(tmp_path: Path, run: Any, order: Order) -> None:
    side = Side(tmp_path, run)
    side.commit(order)
    assert side.ledger.counters()["orders_unusable"] == 1
    assert side.politeness.rule_against("a.test") == ""
    side.ledger.close()


def test_a_crawl_delay_of_robots_txt_holds_where_it_is_longer(tmp_path: Path, run: Any) -> None:
    side = Side(tmp_path, run)
    side.commit(Delay("slow.test", 30.0))
    side.politeness.pace("slow.test", 60.0)
    assert side.asked("slow.test") == (60.0, "robots")
    side.politeness.pace("slow.test", 10.0)
    assert (side.politeness.delay("slow.test"), side.politeness.delay_reason("slow.test")) == (30.0, "processor")
    side.ledger.close()
