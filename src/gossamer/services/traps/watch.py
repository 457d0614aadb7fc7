"""The decision: which families of a host are traps, and how much of them is still fetched. Pure; instants do not matter.

A family is judged by its last sixteen pages. Sixteen is the price of a trap: a host cannot cost more than about twenty pages before
its trap is known (FAULTS 40 allows fifty), and a site of fewer equal pages is never suspected.
"""

import re
import zlib
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence

from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.visit import Visit
from gossamer.services.traps.families import Trace, trace
from gossamer.services.traps.novelty import Sketch, words

#: Pages of a family that are judged together, how many of them must have said nothing new, and how many must have led to new URLs
#: of the family itself: a list of equal leaves is none, and ends.
WINDOW = 16
STALE = 14
FEEDING = 8

#: With at most so many stale pages among them a family has news; then it is left alone for a while, longer each time.
FRESH = 4
LONGEST_REST = 256

#: How many of them must have the shape that gives the trap its name.
SHAPED = 12

#: Pages of a cut family that bring nothing before it is cut again, and pages with news before the cut is halved.
CUT_AGAIN = 4
RESTORE = 3

#: Each cut leaves a tenth; a ten-thousandth is the least that is left, so that news can still be noticed.
CUT = 10
MOST_CUTS = 4

#: Segments from which on a path that grows with each link counts as growing: sites nest less (FAULTS 38 asks for 20 at most).
GROWN = 8

#: Combinations of parameters after which a list counts as faceted: sorting and paging alone make fewer.
COMBINATIONS = 4

#: Identifiers that lead to the same rest of a path before they count as sessions, and how many rests are compared.
SESSIONS = 3
RESTS = 8

#: Pages of a host that its allowance goes by, and the share of them that must have been new.
HOST_WINDOW = 50
HOST_NEW = 0.1

_NOT_THERE = re.compile(
    r"not found|404|does(?: not|n.t) exist|no longer (?:available|exists)|page unavailable|nicht gefunden|introuvable|"
    r"no encontrad|não encontrad|non trovat|niet gevonden|nem található|не найден|見つかりません|未找到|不存在",
    re.IGNORECASE,
)


class _Family:
    """What is known of one family."""

    __slots__ = (
        "combinations",
        "cut",
        "fresh",
        "level",
        "name",
        "pages",
        "rest",
        "rested",
        "rests",
        "sketch",
        "stale",
        "window",
    )

    def __init__(self) -> None:
        self.sketch = Sketch()
        self.pages = 0
        self.window: list[tuple[bool, bool, frozenset[str]]] = []
        """Of the last pages: said nothing new, led to new URLs of the family, and which shapes it had."""
        self.combinations: set[tuple[str, ...]] = set()
        self.rests: dict[str, set[str]] = {}
        self.rest = 0
        """Pages that will not be looked at."""
        self.rested = 0
        """How many they were the last time."""
        self.level = 0
        """How often it was cut."""
        self.name = ""
        self.stale = 0
        self.fresh = 0
        self.cut = 0


class TrapWatch:
    """Watches families of pages."""

    def __init__(self, families: int = 8_192, hosts: int = 16_384) -> None:
        """How many of each are remembered; a family takes about 2 kB, a host 200 bytes."""
        self._most_families = families
        self._most_hosts = hosts
        self._families: OrderedDict[tuple[str, str], _Family] = OrderedDict()
        self._hosts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        """Of each host its pages, at most :data:`HOST_WINDOW`, and their news as bits."""
        self.found: Counter[str] = Counter()
        """Families that were cut, by the trap's name."""
        self.cuts: Counter[str] = Counter()
        """Tasks that were refused, by the trap's name."""

    def __repr__(self) -> str:
        return f"<TrapWatch {len(self._families)} families, {sum(self.found.values())} cuts>"

    def __len__(self) -> int:
        return len(self._families)

    # -- learning

    def observe(self, visit: Visit) -> str:
        """Learn from a page; the name of the trap that its family is found to be by it, or an empty string."""
        if not visit.is_page or visit.response.outcome is not Outcome.OK:
            return ""
        seen = trace(visit.url)
        shapes = _shapes(visit, seen)
        key = (visit.task.host, seen.family)
        if not shapes and key not in self._families:
            self._note_host(visit.task.host, not visit.duplicate_of)
            return ""
        family = self._family(key)
        family.pages += 1
        if family.rest:
            # It has had news all the while: looking at the words of each of its pages would cost more than it could save.
            family.rest -= 1
            self._note_host(visit.task.host, not visit.duplicate_of)
            return ""
        said = words(visit.response.content, visit.url)
        is_new = family.sketch.is_new(said) and not visit.duplicate_of
        self._note_host(visit.task.host, is_new)
        _remember_shape(family, seen)
        feeds = family.level == 0 and any(trace(task.url).family == seen.family for task in visit.new)
        family.window.append((not is_new, feeds, shapes))
        del family.window[:-WINDOW]
        return self._levelled(family, is_new) if family.level else self._judged(family)

    def _family(self, key: tuple[str, str]) -> _Family:
        family = self._families.get(key)
        if family is None:
            family = self._families[key] = _Family()
            if len(self._families) > self._most_families:
                self._families.popitem(last=False)
        else:
            self._families.move_to_end(key)
        return family

    def _judged(self, family: _Family) -> str:
        """The name of the trap that a family turns out to be."""
        window = family.window
        if len(window) < WINDOW:
            return ""
        stale = sum(stale for stale, _, _ in window)
        if stale <= FRESH:
            family.rest = family.rested = min(LONGEST_REST, 2 * family.rested or WINDOW)
            family.window = []
        if stale < STALE:
            return ""
        if sum(feeds for _, feeds, _ in window) < FEEDING:
            return ""
        shapes = Counter(shape for _, _, those in window for shape in those)
        for name, holds in (
            ("soft-404", shapes["soft-404"] >= SHAPED),
            ("session-ids", any(len(identifiers) >= SESSIONS for identifiers in family.rests.values())),
            ("facets", len(family.combinations) >= COMBINATIONS),
            ("calendar", shapes["dated"] >= SHAPED),
            ("growing-path", shapes["grown"] >= SHAPED),
        ):
            if holds:
                family.level, family.name = 1, f"trap:{name}"
                self.found[family.name] += 1
                return family.name
        return ""

    def _levelled(self, family: _Family, is_new: bool) -> str:
        """Cut a family again whose pages still say nothing; cut it less when they do."""
        if is_new:
            family.fresh, family.stale = family.fresh + 1, 0
            if family.fresh >= RESTORE:
                family.level, family.fresh = family.level - 1, 0
                family.window.clear()
        else:
            family.stale += 1
            if family.stale >= CUT_AGAIN and family.level < MOST_CUTS:
                family.level, family.stale, family.fresh = family.level + 1, 0, 0
                return family.name
        return ""

    def _note_host(self, host: str, is_new: bool) -> None:
        count, bits = self._hosts.pop(host, (0, 0))
        self._hosts[host] = (min(count + 1, HOST_WINDOW), (bits << 1 | is_new) & (1 << HOST_WINDOW) - 1)
        if len(self._hosts) > self._most_hosts:
            self._hosts.popitem(last=False)

    # -- deciding

    def judge(self, tasks: Sequence[Task]) -> list[str]:
        """A verdict for each task; what is refused is counted."""
        if not self.found:
            return [""] * len(tasks)
        return [self._judge(task) for task in tasks]

    def _judge(self, task: Task) -> str:
        family = self._families.get((task.host, trace(task.url).family))
        if family is None or not family.level or task.relation == "seed":
            return ""
        # By the URL itself: asked again, the answer is the same, whoever else is asked about.
        if zlib.crc32(task.url.encode()) % CUT**family.level == 0:
            return ""
        family.cut += 1
        self.cuts[family.name] += 1
        return family.name

    def allowance(self, host: str) -> float:
        """A tenth for a host whose last fifty pages brought next to nothing."""
        count, bits = self._hosts.get(host, (0, 0))
        return 1 / CUT if count >= HOST_WINDOW and bits.bit_count() < HOST_NEW * count else 1.0

    def story(self, host: str, url: str) -> str:
        """What is known of a URL's family, if it is a trap."""
        seen = trace(url)
        family = self._families.get((host, seen.family))
        if family is None or not family.name:
            return ""
        stale = sum(stale for stale, _, _ in family.window)
        share = f"1 in {CUT**family.level} is fetched" if family.level else "no longer cut, since it has news again"
        return (
            f"{family.name}: {host}{seen.family} ({family.pages} pages, {stale} of the last {len(family.window)} said nothing "
            f"new; {share}; {family.cut} refused)"
        )

    def by_name(self) -> Mapping[str, int]:
        """Tasks that each trap has cost."""
        return dict(self.cuts)


def _shapes(visit: Visit, seen: Trace) -> frozenset[str]:
    """What is suspicious in a page: nothing, for nearly all."""
    found = []
    if seen.is_dated:
        found.append("dated")
    if seen.identifier:
        found.append("identifier")
    if seen.names:
        found.append("parameters")
    if seen.segments >= GROWN and visit.url.startswith(visit.task.source.partition("?")[0].rpartition("/")[0] + "/"):
        found.append("grown")
    if visit.title and _NOT_THERE.search(visit.title):
        found.append("soft-404")
    return frozenset(found)


def _remember_shape(family: _Family, seen: Trace) -> None:
    """Keep what tells sessions and facets, up to the number that decides."""
    if seen.names and len(family.combinations) < COMBINATIONS:
        family.combinations.add(seen.names)
    if seen.identifier:
        if seen.rest not in family.rests and len(family.rests) >= RESTS:
            family.rests.pop(next(iter(family.rests)))
        identifiers = family.rests.setdefault(seen.rest, set())
        if len(identifiers) < SESSIONS:
            identifiers.add(seen.identifier)
