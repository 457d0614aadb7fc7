"""What the frontier knows of the hosts that take turns: plain bookkeeping, bounded by their number.

A host is here from its admission until its queue is empty or its turn is over; for a while after that it is remembered,
since most hosts come back soon. What must outlive the process is in the ledger.
"""

from collections import OrderedDict
from collections.abc import Iterator

from gossamer.model.task import Task

#: Hosts that are remembered after they left: their address and pace need not be found again.
REMEMBERED = 8_192


class FrontierHost:
    """One host that takes turns, or that a robots.txt led to."""

    __slots__ = (
        "absent",
        "address",
        "asking",
        "crawl_delay",
        "errands",
        "is_held",
        "is_lively",
        "is_none",
        "level",
        "name",
        "ports",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = ""
        """Its IP address; empty where none is known."""
        self.ports: dict[int, str] = {}
        """Ports that were looked up -> why they must not be asked; empty where they may."""
        self.is_none = False
        """A look-up has said that its name does not exist."""
        self.absent = ""
        """Why none of its links leads anywhere; empty where they may."""
        self.is_held = False
        """The queues have handed it over: its tasks may be popped."""
        self.is_lively = False
        """The last page that it was asked for came, and soon."""
        self.level = 0
        """Of the task that was popped last: which front queue it stands in."""
        self.crawl_delay = 0.0
        """As politeness was told last, in seconds."""
        # Both are nearly always empty, and hosts are many: an empty deque and an empty set would take 970 bytes, these take 56.
        self.asking: tuple[str, ...] = ()
        """Sites of this host whose robots.txt is being fetched: no task goes out before."""
        self.errands: list[Task] = []
        """Robots.txt requests that were redirected to this host by another."""

    def __repr__(self) -> str:
        return f"<Host {self.name} at {self.address}, asking {sorted(self.asking)}>"


class FrontierHosts:
    """Hosts by name."""

    def __init__(self) -> None:
        self._hosts: dict[str, FrontierHost] = {}
        self._left: OrderedDict[str, FrontierHost] = OrderedDict()
        self.get = self._hosts.get
        """The host of this name, or None where it takes no turns."""

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[FrontierHost]:
        return iter(self._hosts.values())

    def __repr__(self) -> str:
        return f"<Hosts {len(self._hosts)} here, {len(self._left)} remembered>"

    def enter(self, name: str, *, is_held: bool) -> FrontierHost:
        """This host takes turns from now on."""
        host = self._hosts.get(name)
        if host is None:
            host = self._left.pop(name) if name in self._left else FrontierHost(name)
            self._hosts[name] = host
        host.is_held = host.is_held or is_held
        return host

    def leave(self, host: FrontierHost) -> list[str]:
        """Its queue is empty, or its turn is over. Returns hosts that are remembered no more."""
        host.is_held = False
        if not (host.asking or host.errands):
            self._hosts.pop(host.name, None)
            self._left[host.name] = host
        forgotten = []
        while len(self._left) > REMEMBERED:
            forgotten.append(self._left.popitem(last=False)[0])
        return forgotten
