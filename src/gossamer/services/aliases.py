"""Two names of one host, detected: same address, same pages at the same paths (seed 002, section 2.2.1; MISSION C7).

Place in the flow: the committer shows it every visit. It reports, and folds nothing: which spelling of a host is met first is a
matter of timing, and a crawl that folded hosts while it runs would not be the same twice. Who has read the report folds them from
the start, by the setting `links.aliases` or `--normalise www`. Plain code without I/O and clock.
"""

from collections import OrderedDict
from typing import Annotated

import msgspec

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.outcome import Outcome
from gossamer.model.url import path_of
from gossamer.model.visit import Visit

#: Equal pages that prove an alias, and how many of them may be missing for one that differs: pages with a date or a counter in
#: them differ from one moment to the next.
NEEDED = 3
PER_DIFFERENCE = 5

#: Pairs of hosts that are compared at once.
MOST_PAIRS = 4_096

#: Bytes of a body that says something: a thousand hosts of one machine show the same "It works!".
SUBSTANTIAL = 512


class Alias(msgspec.Struct):
    """Two hosts that show the same pages at the same address."""

    name: str
    """The shorter name, without `www.` where there is a choice."""
    other: str
    equal: int = 0
    different: int = 0

    @property
    def is_proven(self) -> bool:
        """Enough equal pages, and hardly any that differ."""
        return self.equal >= NEEDED + PER_DIFFERENCE * self.different


class AliasBook:
    """Compares what hosts of one address show at the same paths."""

    def __init__(self, pages: int = 32_768) -> None:
        """`pages` are remembered to be compared, some 300 bytes each."""
        self._most = pages
        self._shown: OrderedDict[tuple[str, str], dict[str, str]] = OrderedDict()
        """(address, path) -> digest -> the first host that showed it."""
        self._pairs: OrderedDict[tuple[str, str], Alias] = OrderedDict()

    def __repr__(self) -> str:
        return f"<AliasBook {len(self.proven())} aliases>"

    def observe(self, visit: Visit) -> Alias | None:
        """Learn from a page; the alias that it proves, once."""
        response = visit.response
        if not visit.is_page or response.outcome is not Outcome.OK or len(response.body) < SUBSTANTIAL:
            return None
        if not response.address or not visit.digest:
            return None
        key = (response.address, path_of(visit.url))
        shown = self._shown.setdefault(key, {})
        self._shown.move_to_end(key)
        if len(self._shown) > self._most:
            self._shown.popitem(last=False)
        proved = None
        for digest, host in shown.items():
            if host != visit.task.host:
                alias = self._compared(host, visit.task.host, is_equal=digest == visit.digest)
                proved = alias or proved
        # A machine with a thousand hosts has a thousand front pages: the first few are enough to compare with.
        if len(shown) < NEEDED:
            shown.setdefault(visit.digest, visit.task.host)
        return proved

    def _compared(self, one: str, other: str, *, is_equal: bool) -> Alias | None:
        name, longer = sorted((one, other), key=_preference)
        known = self._pairs.get((name, longer))
        if known is None:
            if not is_equal:
                return None
            known = self._pairs[name, longer] = Alias(name, longer)
            if len(self._pairs) > MOST_PAIRS:
                self._pairs.popitem(last=False)
        was_proven = known.is_proven
        known.equal += is_equal
        known.different += not is_equal
        return known if known.is_proven and not was_proven else None

    def proven(self) -> list[Alias]:
        """The aliases that are proven now, by name."""
        return sorted((one for one in self._pairs.values() if one.is_proven), key=lambda one: (one.name, one.other))


def _preference(host: str) -> tuple[bool, int, str]:
    return host.startswith("www."), len(host), host


class AliasSheet(Sheet, frozen=True):
    """Settings of :class:`HostAliases`."""

    pages: Annotated[
        int, setting("Pages that are compared, 300 bytes each.", unit="pages", restart="it sizes the memory", ge=1)
    ] = 32_768


class HostAliases(Provider[AliasSheet]):
    """Reports hosts with two names. Contract: `watching.Watcher`."""

    keeps_state = True

    def __init__(self, sheet: AliasSheet | None = None) -> None:
        super().__init__(sheet)
        self.book = AliasBook(self.sheet.pages)
        self.metrics.gauge("proven", lambda: len(self.book.proven()))

    def observe(self, visit: Visit) -> str:
        """Learn from a visit: `alias` where it proves one."""
        if self.book.observe(visit) is None:
            return ""
        self.metrics.count("found:alias")
        return "alias"
