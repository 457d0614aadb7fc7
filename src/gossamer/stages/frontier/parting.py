"""What is kept of hosts that must wait when a run ends, beside what was committed with their visits.

Place in the flow: the frontier calls this when it stops. A host's state is written with each of its visits. One that was asked in
a run that was killed waits its whole delay in the next, which may end before it has visited the host: without this, a third run
would go by what the first one wrote, and ask too soon.
"""

from collections.abc import Iterable

import msgspec

from gossamer.contracts.ledger import Ledger
from gossamer.contracts.politeness import Politeness
from gossamer.model.errors import DiskFull


def keep_waits(ledger: Ledger, politeness: Politeness, hosts: Iterable[str], now: float) -> None:
    """Write down how long each of these hosts has still to wait; `now` is monotonic."""
    waiting = [name for name in hosts if politeness.waits(name, now) > 0.0]
    if not waiting:
        return
    try:
        with ledger.group() as group:
            for name in waiting:
                if note := politeness.note(name):
                    group.host(msgspec.structs.replace(group.host_state(name), note=note))
    except DiskFull:
        return  # then they go by what was written before
