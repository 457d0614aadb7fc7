"""The decision: which parts of a host are suspected of being traps. Pure; instants do not matter.

Place in the flow: :mod:`provider` shows it each visit, and asks about each task.

Two things must come together, over the last pages of a part. They said nothing of their own: what is left of them without the
host's template and without the words of URLs is like that of earlier pages. And the part grows without end in sight: its pages lead
to more new URLs of the part than are fetched; or to as many whose names are invented; or to fewer, and the URLs have a proven
pattern: months, sessions, combinations of parameters, segments that repeat, pages that reload themselves under another name.

A page costs a look at its URL. Its words are read only where it leads to new URLs of a part that has not shown its worth yet, and
of one that has, once in :data:`SAMPLE` such pages.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gossamer.frontier.traps.contract import HostTemplate, Learnt
from gossamer.frontier.traps.families import depth_of, named_directory_of, parts_of, shape_of, shared_beginning, trace
from gossamer.frontier.traps.judging import (
    FEEDS,
    NOTHING_NEW,
    WINDOW,
    bits_of,
    ends,
    is_stale,
    remember_shape,
    says_nothing,
    those,
    trap_of,
)
from gossamer.frontier.traps.memory import (
    FOUND,
    GRACE,
    SUSPECTS_OF_HOST,
    WILDCARD,
    Decisions,
    Memory,
    PartState,
    Recall,
    TrapHost,
    TrapPart,
    belongs,
    is_watched,
    is_young,
    rest_of,
    suspicions_of,
)
from gossamer.values.hosts import registered_domain
from gossamer.values.outcome import Outcome
from gossamer.values.task import Family, Task
from gossamer.values.url import path_of
from gossamer.values.visit import Visit

#: So many of the last :data:`RECENT` pages with news are enough for trust, and then one page in so many is looked at.
NEWS, RECENT, SAMPLE = 2, 4, 24

#: With fewer pages in a full window that led on, a part is calm: it ends.
CALM = 6

#: A part that ended after all has so many times more grace, each time it does.
LENIENCE = 16

#: How often that counts.
MOST_ENDS = 3

#: A URL of so many characters may lead to none because they would be too long.
LONG_URL = 1_000


class _Place(NamedTuple):
    """A part that a visit belongs to."""

    owner: str
    host: TrapHost
    name: str
    skipped: int
    fed: int
    """New URLs of the part that it led to."""


class TrapWatch:
    """Watches parts of hosts."""

    def __init__(self, template: HostTemplate, parts: int = 8_192, hosts: int = 16_384) -> None:
        """How many of each are remembered; a part takes about 500 bytes, a host 400."""
        self._template = template
        self._memory = Memory(parts, hosts)
        self.decisions = Decisions(self._memory)
        """The decisions of a person."""
        self._returning: dict[tuple[str, str], Family] = {}
        self._any_suspect = False
        self.found: Counter[str] = Counter()
        """Parts that were suspected, by the trap's name."""
        self.aside: Counter[str] = Counter()
        """Tasks that were set aside, by the trap's name."""

    def __len__(self) -> int:
        return len(self._memory)

    def go_on(self, recall: Recall, *, is_known: bool) -> None:
        """Take back by `recall` what is known of hosts when they are touched; `is_known`: there is something."""
        self._memory.go_on(recall, is_known=is_known)
        self._any_suspect = is_known

    def learnt(self) -> Iterator[Learnt]:
        """The facts of hosts that have changed since the last call."""
        return self._memory.changed()

    def decide(self, traps: Sequence[Family], trusted: Sequence[Family]) -> None:
        """Take a person's word for what is a trap, and what is none."""
        self._any_suspect = self._any_suspect or bool(traps)
        for family in self.decisions.decide(traps, trusted):
            self._free(family.owner, self._memory.host(family.owner), family.part)

    # -- learning

    def observe(self, visit: Visit) -> str:
        """Learn from a visit; the name of the trap that one of its parts is found to be by it, or an empty string."""
        if visit.is_robots:
            return ""  # no part of a site: invented hosts without a robots.txt are not the end of them
        if visit.response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
            self._observe_end(visit)
            return ""
        if not visit.is_page:
            self._observe_document(visit)
            return ""
        if visit.needs_browser and not visit.duplicate_of:
            return ""  # its text is not here, so it is evidence of nothing
        places = self._places(visit)
        wanting = [place for place in places if self._wants_look(place)]
        if not wanting:
            return ""
        news: dict[str, bool] = {}
        name = ""
        for place in wanting:
            if place.owner not in news:
                news[place.owner] = not says_nothing(visit, place.owner, place.host, self._template)
            name = self._learn(visit, place, has_news=news[place.owner]) or name
        own = next((place for place in places if place.owner == visit.task.host), None)
        if own is not None and news.get(own.owner):
            # A small directory with news is none of those that a trap invents.
            wide = self._memory.part(own.owner, own.host, places[1].name, own.skipped)
            if wide.state is PartState.FRESH and wide.feeding < GRACE:
                own.host.turn(wide, PartState.TRUSTED)
        return name

    def _places(self, visit: Visit) -> list[_Place]:
        """The parts that a page belongs to, the widest last."""
        name = visit.task.host
        host = self._memory.host(name)
        host.pages += 1
        if not host.base:
            host.base = named_directory_of(visit.url)
        elif not path_of(visit.url).startswith(host.base):
            host.base = shared_beginning(host.base, named_directory_of(visit.url))
        suspects = host.suspects if self._any_suspect else ()
        skipped = depth_of(host.base)
        wide, narrow = parts_of(visit.url, skipped)
        if not visit.new and not suspects and not is_watched(host, (narrow, wide, rest_of(host))):
            return []
        own = [task for task in visit.new if task.host == name]
        names = (narrow, wide)
        wides, narrows = zip(*(parts_of(task.url, skipped) for task in own), strict=True) if own else ((), ())
        places = [
            _Place(name, host, narrow, skipped, narrows.count(narrow)),
            _Place(name, host, wide, skipped, wides.count(wide)),
        ]
        if is_young(host, wide):
            fed_rest = sum(count for other, count in Counter(wides).items() if is_young(host, other))
            places.append(_Place(name, host, rest_of(host), skipped, fed_rest))
        for suspect in suspects:
            if suspect not in names and suspect != rest_of(host):
                depth = host.parts[suspect].skipped
                if belongs(visit.task, suspect, depth, host):
                    fed_too = sum(belongs(task, suspect, depth, host) for task in own)
                    places.append(_Place(name, host, suspect, depth, fed_too))
        if len(own) < len(visit.new):
            places += self._wild(visit, name)
        return places

    def _wild(self, visit: Visit, name: str) -> list[_Place]:
        """The domain as a part, where a young host leads to other hosts of its domain."""
        domain = registered_domain(name)
        below = f".{domain}"
        fed = len({task.host for task in visit.new if task.host != name and task.host.endswith(below)})
        if not fed or name == domain:
            return []
        owner = f"*{below}"
        return [_Place(owner, self._memory.host(owner), WILDCARD, 0, fed)]

    def _wants_look(self, place: _Place) -> bool:
        """Whether the text of a page is to be read for this part; what it leads to is counted."""
        part = place.host.parts.get(place.name)
        if part is None:
            if not place.fed:
                return False
            part = self._memory.part(place.owner, place.host, place.name, place.skipped)
        if part.state is PartState.SUSPECT:
            return True
        if not place.fed:
            return bool(part.window)
        part.feeding += 1
        if part.state is PartState.TRUSTED:
            return part.feeding % SAMPLE == 0
        if part.feeding > GRACE * LENIENCE**part.ended:
            return True
        self._memory.keep(place.owner)
        return False

    def _learn(self, visit: Visit, place: _Place, *, has_news: bool) -> str:
        owner, host, name, skipped, fed = place
        part = self._memory.part(owner, host, name, skipped)
        self._memory.keep(owner)
        part.pages += 1
        part.found += fed
        part.news += has_news
        part.since = 0 if has_news else part.since + 1
        seen = trace(visit.url)
        remember_shape(part, seen)
        part.window.append(bits_of(visit, seen, fed, has_news=has_news))
        del part.window[:-WINDOW]
        if part.state is PartState.SUSPECT:
            if has_news:
                self._free(owner, host, name)
            else:
                self._check_end(visit, owner, host, name)
            return ""
        return self._judged(owner, host, name, part)

    def _judged(self, owner: str, host: TrapHost, name: str, part: TrapPart) -> str:
        """The name of the trap that a part turns out to be; what is thought of it changes."""
        window = part.window
        if part.state is PartState.TRUSTED and not window[-1] & NOTHING_NEW:
            window.clear()
            return ""
        recent = window[-RECENT:]
        if len(recent) - those(recent, NOTHING_NEW) >= NEWS:
            host.turn(part, PartState.TRUSTED)
            window.clear()
            return ""
        host.turn(part, PartState.FRESH)
        if len(window) < WINDOW:
            return ""
        if those(window, FEEDS) < CALM:
            part.feeding = 0
            window.clear()
            return ""
        found = trap_of(part, is_wild=name == WILDCARD) if is_stale(part) else ""
        is_trusted = self.decisions.of(owner, name) is False
        if not found or is_trusted or len(host.suspects) >= SUSPECTS_OF_HOST:
            return ""
        host.turn(part, PartState.SUSPECT)
        part.name = FOUND + found
        self._any_suspect = True
        self._returning.pop((owner, name), None)
        self.found[part.name] += 1
        return part.name

    def _observe_end(self, visit: Visit) -> None:
        """A URL of a suspected part that brings nothing, not even a page, leads nowhere: the part ends there."""
        if self._any_suspect and visit.response.outcome in (Outcome.CLIENT_ERROR, Outcome.NOT_MODIFIED):
            for owner, host, name in list(suspicions_of(visit.task, self._memory)):
                part = host.parts[name]
                part.window.append(NOTHING_NEW)
                del part.window[:-WINDOW]
                self._memory.keep(owner)
                self._check_end(visit, owner, host, name)

    def _check_end(self, visit: Visit, owner: str, host: TrapHost, name: str) -> None:
        """Free a part whose last probes led nowhere: it ends after all, as a site of equal pages does."""
        part = host.parts[name]
        if len(visit.url) < LONG_URL and ends(part):
            part.ended = min(part.ended + 1, MOST_ENDS)
            self._free(owner, host, name)

    def _observe_document(self, visit: Visit) -> None:
        """A document that is no page is news, if its bytes are new."""
        if (
            self._any_suspect
            and visit.response.outcome is Outcome.OK
            and not visit.duplicate_of
            and not visit.discarded
        ):
            for owner, host, name in list(suspicions_of(visit.task, self._memory)):
                self._free(owner, host, name)

    def _free(self, owner: str, host: TrapHost, name: str) -> None:
        """Trust a part again; what was set aside of it comes back."""
        part = self._memory.part(owner, host, name, host.parts[name].skipped if name in host.parts else 0)
        host.turn(part, PartState.FRESH if part.ended else PartState.TRUSTED)
        part.feeding = 0
        part.window.clear()
        self._memory.keep(owner)
        self._returning[owner, name] = Family(owner, name, part.name, part.skipped)

    # -- deciding

    def place(self, tasks: Sequence[Task], *, is_new: bool) -> list[Family | None]:
        """For each task the family under which it is to be set aside; None for what is crawled.

        Args:
            tasks: to be queued, or to be fetched.
            is_new: they are to be queued: shapes are judged then, once.
        """
        shapes = [shape_of(task.url, task.source) for task in tasks] if is_new else [""] * len(tasks)
        if not self._any_suspect and not any(shapes):
            return [None] * len(tasks)
        self._memory.recall([task.host for task in tasks])
        return [self._place(task, shape) for task, shape in zip(tasks, shapes, strict=True)]

    def _place(self, task: Task, shape: str) -> Family | None:
        if task.relation == "seed" or self.decisions.has(task):
            return None
        if shape:
            host = self._memory.host(task.host)
            name = shape.removeprefix(FOUND)
            part = host.parts.get(name)
            if part is None:
                part = self._memory.part(task.host, host, name, 0)
                host.turn(part, PartState.SUSPECT)
                part.name = shape
                self._any_suspect = True
                self._memory.keep(task.host)
                self.found[shape] += 1
            if part.state is PartState.SUSPECT and self.decisions.of(task.host, name) is not False:
                return self._told(Family(task.host, name, shape))
        for owner, host, name in suspicions_of(task, self._memory):
            part = host.parts[name]
            return self._told(Family(owner, name, part.name, part.skipped))
        return None

    def _told(self, family: Family) -> Family:
        self.aside[family.why] += 1
        return family

    def is_suspect(self, family: Family) -> bool:
        """Whether what was set aside of a family is to stay there."""
        decided = self.decisions.of(family.owner, family.part)
        if decided is not None:
            return decided
        host = self._memory.look(family.owner)
        part = host.parts.get(family.part) if host is not None else None
        return part is not None and part.state is PartState.SUSPECT

    def returning(self) -> list[Family]:
        """Families of which everything comes back, since this was last asked."""
        if not self._returning:
            return []
        found, self._returning = list(self._returning.values()), {}
        return found
