"""The decision: which families of a host are traps, and how much of them is still fetched. Pure; instants do not matter.

A family is judged by its last sixteen pages. Sixteen is the price of a trap: a host cannot cost more than about twenty pages before
its trap is known (FAULTS 40 allows fifty), and a site of fewer equal pages is never suspected.
"""

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from xxhash import xxh32_intdigest

from gossamer.contracts.watching import Learnt
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.visit import Visit
from gossamer.services.traps.families import Trace, trace
from gossamer.services.traps.memory import Family, Memory, Recall
from gossamer.services.traps.novelty import words

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

#: How the names of traps begin.
FOUND = "trap:"

#: What a page was, as bits of its place in a family's window: it said nothing new, it led to new URLs of the family, its URL is
#: dated, goes deeper and deeper, its title says that nothing is there; or its URL has another suspicious shape.
NOTHING_NEW, FEEDS, DATED, GROWING, NOT_THERE, OTHER_SHAPE = (1 << bit for bit in range(6))

_SAYS_NOT_THERE = re.compile(
    r"not found|404|does(?: not|n.t) exist|no longer (?:available|exists)|page unavailable|nicht gefunden|introuvable|"
    r"no encontrad|não encontrad|non trovat|niet gevonden|nem található|не найден|見つかりません|未找到|不存在",
    re.IGNORECASE,
)


class TrapWatch:
    """Watches families of pages."""

    def __init__(self, families: int = 8_192, hosts: int = 16_384) -> None:
        """How many of each are remembered; a family takes about 2 kB, a host 300 bytes."""
        self._memory = Memory(families, hosts)
        self._found_before = False
        """An earlier run has cut families."""
        self.found: Counter[str] = Counter()
        """Families that were cut, by the trap's name."""
        self.cuts: Counter[str] = Counter()
        """Tasks that were refused, by the trap's name."""

    def __repr__(self) -> str:
        return f"<TrapWatch {len(self._memory)} families, {sum(self.found.values())} cuts>"

    def __len__(self) -> int:
        return len(self._memory)

    def go_on(self, recall: Recall, *, is_known: bool, has_found: bool) -> None:
        """Take back by `recall` what is known of hosts when they are touched.

        Args:
            recall: gives the bytes that are kept of hosts, in order.
            is_known: there are any.
            has_found: some of them were cut.
        """
        self._memory.go_on(recall, is_known=is_known)
        self._found_before = has_found

    def learnt(self) -> Iterator[Learnt]:
        """What has changed of hosts since this was last asked."""
        return self._memory.changed()

    # -- learning

    def observe(self, visit: Visit) -> str:
        """Learn from a page; the name of the trap that its family is found to be by it, or an empty string."""
        if not visit.is_page or visit.response.outcome is not Outcome.OK:
            return ""
        seen = trace(visit.url)
        shapes = _shapes(visit, seen)
        host = visit.task.host
        family = self._memory.get(host, seen.family)
        if family is None and not shapes:
            return ""
        if family is not None and family.rest:
            # It has had news all the while: looking at the words of each of its pages would cost more than it could save.
            family.pages += 1
            family.rest -= 1
            return ""
        family = self._memory.touched(host, seen.family)
        family.pages += 1
        said = words(visit.response.content, visit.url)
        is_new = family.sketch.is_new(said) and not visit.duplicate_of
        _remember_shape(family, seen)
        feeds = family.level == 0 and any(trace(task.url).family == seen.family for task in visit.new)
        family.window.append(shapes | (0 if is_new else NOTHING_NEW) | (FEEDS if feeds else 0))
        del family.window[:-WINDOW]
        return self._levelled(family, is_new) if family.level else self._judged(family)

    def _judged(self, family: Family) -> str:
        """The name of the trap that a family turns out to be."""
        window = family.window
        if len(window) < WINDOW:
            return ""
        stale = _those(window, NOTHING_NEW)
        if stale <= FRESH:
            family.rest = family.rested = min(LONGEST_REST, 2 * family.rested or WINDOW)
            family.window = bytearray()
        if stale < STALE or _those(window, FEEDS) < FEEDING:
            return ""
        for name, holds in (
            ("soft-404", _those(window, NOT_THERE) >= SHAPED),
            ("session-ids", any(len(identifiers) >= SESSIONS for identifiers in family.rests.values())),
            ("facets", len(family.combinations) >= COMBINATIONS),
            ("calendar", _those(window, DATED) >= SHAPED),
            ("growing-path", _those(window, GROWING) >= SHAPED),
        ):
            if holds:
                family.level, family.name = 1, f"{FOUND}{name}"
                self.found[family.name] += 1
                return family.name
        return ""

    def _levelled(self, family: Family, is_new: bool) -> str:
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

    # -- deciding

    def judge(self, tasks: Sequence[Task]) -> list[str]:
        """A verdict for each task; what is refused is counted."""
        if not self.found and not self._found_before:
            return [""] * len(tasks)
        self._memory.recall([task.host for task in tasks])
        return [self._judge(task) for task in tasks]

    def _judge(self, task: Task) -> str:
        family = self._memory.get(task.host, trace(task.url).family)
        if family is None or not family.level or task.relation == "seed":
            return ""
        # By the URL itself: asked again, the answer is the same, whoever else is asked about.
        if zlib.crc32(task.url.encode()) % CUT**family.level == 0:
            return ""
        family.cut += 1
        self.cuts[family.name] += 1
        return family.name

    def story(self, host: str, url: str) -> str:
        """What is known of a URL's family, if it is a trap."""
        seen = trace(url)
        family = self._memory.get(host, seen.family)
        if family is None or not family.name:
            return ""
        stale = _those(family.window, NOTHING_NEW)
        share = f"1 in {CUT**family.level} is fetched" if family.level else "no longer cut, since it has news again"
        return (
            f"{family.name}: {host}{seen.family} ({family.pages} pages, {stale} of the last {len(family.window)} said nothing "
            f"new; {share}; {family.cut} refused)"
        )

    def by_name(self) -> Mapping[str, int]:
        """Tasks that each trap has cost."""
        return dict(self.cuts)


def _those(window: bytearray, bit: int) -> int:
    """How many pages of a window have this bit."""
    return sum(1 for page in window if page & bit)


def _shapes(visit: Visit, seen: Trace) -> int:
    """What is suspicious in a page, as bits: nothing, for nearly all."""
    found = DATED if seen.is_dated else 0
    if seen.identifier or seen.names:
        found |= OTHER_SHAPE
    if seen.segments >= GROWN and visit.url.startswith(visit.task.source.partition("?")[0].rpartition("/")[0] + "/"):
        found |= GROWING
    if visit.title and _SAYS_NOT_THERE.search(visit.title):
        found |= NOT_THERE
    return found


def _remember_shape(family: Family, seen: Trace) -> None:
    """Keep what tells sessions and facets, up to the number that decides."""
    if seen.names and len(family.combinations) < COMBINATIONS:
        family.combinations.add(_checksum("&".join(seen.names)))
    if seen.identifier:
        rest = _checksum(seen.rest)
        if rest not in family.rests and len(family.rests) >= RESTS:
            family.rests.pop(next(iter(family.rests)))
        identifiers = family.rests.setdefault(rest, set())
        if len(identifiers) < SESSIONS:
            identifiers.add(_checksum(seen.identifier))


def _checksum(text: str) -> int:
    """URLs are a stranger's, and as long as they like: what is compared of them is not kept."""
    return xxh32_intdigest(text.encode("utf-8", "surrogatepass"))
