"""One agent as its supervisor sees it: a process whose ledger says how it ended.

Place in the flow: :mod:`gossamer.assembly.agency.supervisor` has one for each agent.
"""

import signal

from gossamer.assembly.agency.supervised import SupervisedProcess
from gossamer.assembly.lost_ledger import damage_of
from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores.ledger.ledger import LedgerSheet, RocksLedger


class AgentProcess(SupervisedProcess):
    """One agent, as its supervisor sees it."""

    def has_lost_ledger(self) -> bool:
        """Its ledger was taken away, or is damaged, and with it all that waited there. It may take long."""
        try:
            return damage_of(RocksLedger(LedgerSheet(directory=str(self.directory), agent=self.name))) is not None
        except CrawlDirectoryError:
            return False  # another version's, which its next start refuses

    def _last_status(self) -> int:
        """An agent that ends in order closes its ledger."""
        with RocksLedger(LedgerSheet(directory=str(self.directory), agent=self.name)).looking() as ledger:
            return 0 if ledger.is_clean else -signal.SIGKILL
