"""One agent as its supervisor sees it: a process whose ledger says how it ended.

Place in the flow: :mod:`gossamer.assembly.agency.supervisor` has one for each agent.
"""

import signal

from gossamer.assembly.agency.supervised import SupervisedProcess
from gossamer.stores.ledger.ledger import LedgerSheet, RocksLedger


class AgentProcess(SupervisedProcess):
    """One agent, as its supervisor sees it."""

    def _last_status(self) -> int:
        """An agent that ends in order closes its ledger."""
        with RocksLedger(LedgerSheet(directory=str(self.directory), agent=self.name)).looking() as ledger:
            return 0 if ledger.is_clean else -signal.SIGKILL
