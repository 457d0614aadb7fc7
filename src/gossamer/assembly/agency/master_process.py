"""One master as its supervisor sees it: a process whose lease says how it ended, and whose work others do if it is gone for good.

Place in the flow: :mod:`gossamer.assembly.agency.supervisor` has one for each master.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from gossamer.assembly.agency.meeting import living, process_of
from gossamer.assembly.agency.supervised import SupervisedProcess
from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores.exchange.mail_on_disk import leases
from gossamer.stores.shared_state import SharedFile

#: Seconds that masters have to end which nobody needs, and between two looks at them.
_GRACE = 10.0
_LOOK = 0.1


class MasterProcess(SupervisedProcess):
    """One master, as its supervisor sees it."""

    is_gone = False
    """It does not come back: another master does its work."""

    def _last_status(self) -> int:
        """A master that ends in order gives its lease back."""
        with contextlib.suppress(CrawlDirectoryError), closing(SharedFile(self.directory)) as shared:
            if leases(shared.reading).get(self.name) == 0.0:
                return 0
        return -signal.SIGKILL


async def end_masters(directory: Path, masters: Iterable[str]) -> None:
    """End masters that are at work without agents and without a supervisor. They hold nothing that would be lost."""
    for name, process in living(directory, list(masters)).items():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                while process_of(directory, name) == process:
                    await asyncio.sleep(_LOOK)
        if process_of(directory, name) == process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
