"""Whether a page says anything new, and what the last pages of a part say together: whether it grows as traps do, and which trap
it is. Pure.

Place in the flow: :mod:`watch` asks here of a page that leads on, for each owner of its parts. Two looks decide. The first is at
the words of a page without the host's template and the words of URLs: most pages of most hosts have some of their own. Where a
page has none, the second look is at the order of the words that it shares: a new text of old words says something, a form that is
filled in by a machine does not. No words are compared across tags, since lists that are sorted in another way are the commonest
trap. A page is then one byte in the window of its part; the evidence that people are shown is counted from the same bytes.
"""

import re

from xxhash import xxh32_intdigest

from gossamer.documents.terms import LOOKED_AT, marks_of, runs_of, words_of, words_of_urls
from gossamer.frontier.traps.contract import HostTemplate
from gossamer.frontier.traps.families import UrlTrace, directory_of
from gossamer.frontier.traps.likeness import SAME, likeness_of, sketch_of
from gossamer.frontier.traps.memory import PartState, TrapHost, TrapPart, read_host
from gossamer.values.body import beginning
from gossamer.values.patterns import lazy_pattern
from gossamer.values.task import Family
from gossamer.values.visit import Visit

# Whether a page says anything new.

#: Marks of a page's own that are not worth the name: a counter spelt out, a name of a month.
NOTHING = 3

#: From what likeness on a remainder says what an earlier page has said.
LIKE = 0.8

#: URLs of a page whose words are left out of its own: a page with more is bounded work.
ECHOED = 500

#: Words in a row that are compared. Three occur together by chance in text of a hundred different words, four hardly ever.
RUN = 4

#: Runs that no earlier page has, from which on they are text: two sentences. Lines of a form with another word in them have fewer.
TEXT = 24

#: Pages of a host whose runs are remembered, each in 128 bytes. A trap that takes turns between texts has fewer.
REMEMBERED = 16


def says_nothing(visit: Visit, owner: str, host: TrapHost, template: HostTemplate) -> bool:
    """Whether a page says nothing that earlier ones of its owner have not said; `host` remembers what is compared."""
    content = beginning(visit.shown, LOOKED_AT)
    words = words_of(content)
    echoes = words_of_urls((visit.url, *(task.url for task in visit.new[:ECHOED])))
    reading = template.read(owner, marks_of(words - echoes))
    if visit.duplicate_of or not reading.kinds:
        # A copy says nothing, and shows its kind. Of a host of which nothing is known, no page can differ.
        return True
    if not reading.earlier or (reading.size > NOTHING and reading.likeness < LIKE):
        return False
    own = {word for word in words if xxh32_intdigest(word) in reading.own}
    return not _is_new_text(marks_of(runs_of(content, RUN, echoes | own)), host)


def _is_new_text(runs: set[int], host: TrapHost) -> bool:
    """Whether enough of these runs are new, as far as remembered pages tell. The first page has none to differ from."""
    drawn = sketch_of(runs)
    likeness = likeness_of(drawn, host.told)
    is_first = not host.told
    if likeness < SAME:
        host.told.append(drawn.tobytes())
        del host.told[:-REMEMBERED]
    # Of two sets of one size with this likeness (Jaccard), so much of either is not in the other.
    new = len(runs) * (1 - likeness) / (1 + likeness)
    return not is_first and likeness < LIKE and new >= TEXT


# The verdict on the last pages of a part together.

#: Pages that are judged together. With grace, and requests that are under way when they are judged, a trap costs less than
#: fifty pages.
WINDOW = 24

#: How many of them must have said nothing of their own.
STALE = 22

#: Pages with news that a part would have had since the last one, at the rate of its whole life, before their lack says anything:
#: by chance, none of so many comes in one case of 3,000.
EXPECTED = 8

#: How many must have led to several new URLs of the part, to at least one with an invented name, or to any in a proven pattern.
FAST = 18
STEADY, INVENTED = 18, 18
FEEDING, SHAPED = 10, 18

#: Probes of a suspected part in a row that led to no new URL of it: it ends after all.
ENDS = 3

#: Combinations of parameters after which a list counts as faceted: sorting and paging alone make fewer.
COMBINATIONS = 4

#: Identifiers that lead to the same rest of a path before they count as sessions, and how many rests are compared.
SESSIONS = 3
RESTS = 8

#: Facts about a page, as bits of its place in a window: it said nothing of its own, it led to one or several new URLs of the part,
#: its URL is dated, has no counted name, repeats a segment; it was reached by a page that reloads itself; its title says that
#: nothing is there (which gives a trap its name, and is no evidence).
NOTHING_NEW, FEEDS, FEEDS_MORE, DATED, NAMED, GROWS, RELOADED, NOT_THERE = (1 << bit for bit in range(8))

_SAYS_NOT_THERE = lazy_pattern(
    r"not found|404|does(?: not|n.t) exist|no longer (?:available|exists)|page unavailable|nicht gefunden|introuvable|"
    r"no encontrad|não encontrad|non trovat|niet gevonden|nem található|не найден|見つかりません|未找到|不存在",
    re.IGNORECASE,
)


def those(window: bytearray, bit: int) -> int:
    return sum(1 for page in window if page & bit)


def bits_of(visit: Visit, seen: UrlTrace, fed: int, *, has_news: bool) -> int:
    """The facts about a page, as bits of its place in a window; it led to `fed` new URLs of the part."""
    grows = False
    if seen.repeats and visit.task.source:  # is its path longer than that of the page that leads to it?
        here, there = directory_of(visit.url), directory_of(visit.task.source)
        grows = len(here) > len(there) and here.startswith(there)
    found = (0 if has_news else NOTHING_NEW) | (FEEDS if fed else 0) | (FEEDS_MORE if fed > 1 else 0)
    found |= (DATED if seen.is_dated else 0) | (0 if seen.is_counted else NAMED) | (GROWS if grows else 0)
    if visit.task.relation.startswith("meta"):
        found |= RELOADED
    if visit.title and _SAYS_NOT_THERE.search(visit.title):
        found |= NOT_THERE
    return found


def is_stale(part: TrapPart) -> bool:
    """Whether the pages of a part say nothing of their own by now: the last ones do not, and its life does not speak against it.

    A part that has had news before may have none for a while. How long that is by chance follows from how often it had some; and as
    a trap may have had some by chance, a window without any outweighs each.
    """
    recent = len(part.window) - those(part.window, NOTHING_NEW)
    if len(part.window) < WINDOW or recent > WINDOW - STALE:
        return False
    if part.news <= recent:
        return True
    return part.since * part.news >= EXPECTED * (part.pages - part.since) or part.since >= WINDOW * (part.news + 1)


def trap_of(part: TrapPart, *, is_wild: bool) -> str:
    """The kind of trap that a part is whose pages say nothing of their own; empty where it ends some time."""
    window = part.window
    feeding = those(window, FEEDS)
    is_fast = those(window, FEEDS_MORE) >= FAST
    is_steady = feeding >= STEADY and those(window, NAMED) >= INVENTED
    patterns = (
        ("session-ids", any(len(identifiers) >= SESSIONS for identifiers in part.rests.values())),
        ("facets", len(part.combinations) >= COMBINATIONS),
        ("calendar", those(window, DATED) >= SHAPED),
        ("repeated-segments", those(window, GROWS) >= SHAPED),
        ("reload", those(window, RELOADED) >= SHAPED),
    )
    for name, holds in patterns:
        if holds and feeding >= FEEDING:
            return name
    if is_fast or is_steady:
        return "wildcard-names" if is_wild else "soft-404" if those(window, NOT_THERE) >= SHAPED else "endless"
    return ""


def ends(part: TrapPart) -> bool:
    last = part.window[-ENDS:]
    return len(last) == ENDS and not those(last, FEEDS)


def remember_shape(part: TrapPart, seen: UrlTrace) -> None:
    """Keep what tells sessions and facets, up to the number that decides."""
    if seen.names and len(part.combinations) < COMBINATIONS:
        part.combinations.add(_checksum("&".join(seen.names)))
    if seen.identifier:
        rest = _checksum(seen.rest)
        if rest not in part.rests and len(part.rests) >= RESTS:
            part.rests.pop(next(iter(part.rests)))
        identifiers = part.rests.setdefault(rest, set())
        if len(identifiers) < SESSIONS:
            identifiers.add(_checksum(seen.identifier))


def _checksum(text: str) -> int:
    """URLs are a stranger's, and as long as they like: the parts that are compared are not kept."""
    return xxh32_intdigest(text.encode("utf-8", "surrogatepass"))


def evidence_of(data: bytes | None, family: Family) -> str:
    """Why a family is, or was, suspected, in words: out of what the ledger keeps of its owner."""
    part = read_host(data).parts.get(family.part)
    return "its evidence is no longer kept" if part is None else evidence(part)


def evidence(part: TrapPart) -> str:
    """Why a part is suspected, in words."""
    if not part.pages:
        return "its URLs have this shape"
    if part.state is not PartState.SUSPECT:
        return f"trusted: its pages have news; {part.pages} pages were looked at"
    stale = those(part.window, NOTHING_NEW)
    return (
        f"{stale} of the last {len(part.window)} pages had no text of their own; {part.pages} pages led to "
        f"{part.found} new URLs like them"
    )
