"""Hosts and domains that are not asked any more: an opt-out takes effect when the host's turn comes next.

Place in the flow: :mod:`schedule` asks when a host's turn comes. An entry closes the name itself and everything below it; an IP
address closes itself alone.
"""

from collections.abc import Iterable, Iterator

from gossamer.values.addresses import is_address
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.url import canonical, host_of

#: Characters that no host name contains, though the URL parser might make one of it: parts of URLs, blanks, wildcards.
_UNFIT = frozenset("/?#@\\*% \t\r\n")


class Blocklist:
    """Names that are closed. `rule(host)` costs one look-up for each label of the name."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """A list with these entries.

        Raises:
            UsageError: one of them is no host name.
        """
        self._entries: dict[str, None] = {}
        for entry in entries:
            self.block(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def block(self, entry: str) -> str:
        """Close a host or domain; returns the name as it is compared: lower case, in its ASCII form.

        Raises:
            UsageError: it is no host name.
        """
        name = _name(entry)
        self._entries[name] = None
        return name

    def rule(self, host: str) -> str:
        """The entry that closes this host; empty where none does."""
        entries = self._entries
        if not entries:
            return ""
        name = host
        while name:
            if name in entries:
                return name
            if name is host and is_address(host):
                return ""
            name = name.partition(".")[2]
        return ""

    def lines(self) -> Iterator[str]:
        """The entries as lines, without their ends, in the order in which they came."""
        yield from self._entries


def _name(entry: str) -> str:
    """A host name in the form in which tasks carry it."""
    bare = entry.strip().removeprefix("*.").strip(".")
    if ":" in bare and not bare.startswith("["):
        bare = f"[{bare}]"
    try:
        host = host_of(canonical(f"http://{bare}/")) if bare and not _UNFIT.intersection(bare) else ""
    except UnreadableUrl:
        host = ""
    if not host:
        raise UsageError(f"{entry!r} is not a host or domain; write it as example.org")
    return host
