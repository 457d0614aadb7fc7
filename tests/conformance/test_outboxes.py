"""The outbox of ours keeps the promises of `contracts.exchanging`."""

from pathlib import Path
from typing import Any

from gossamer.contracts.exchanging import Outbox
from gossamer.contracts.ledger import Ledger
from gossamer.stores.exchange.ledger import DividedLedger
from gossamer.stores.exchange.outbox import AgentOutbox, AgentOutboxSheet
from gossamer.stores.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.exchanging import ByLetter, check_outbox


def test_agent_outbox(tmp_path: Path, run: Any) -> None:
    opened: list[RocksLedger] = []

    async def reopen() -> tuple[Ledger, Outbox]:
        if opened:
            opened.pop().abandon()
        ledger, divided = RocksLedger(LedgerSheet(directory=str(tmp_path))), DividedLedger()
        ledger.open()
        opened.append(ledger)
        outbox = AgentOutbox(AgentOutboxSheet(waiting=8))
        outbox.ledger, outbox.designation = ledger, ByLetter()
        divided.behind, divided.outbox = ledger, outbox
        await outbox.start()
        return divided, outbox

    run(check_outbox(reopen))
    opened.pop().abandon()
