"""Which parts of a host are suspected of being traps: a filter of tasks and a watcher of the commit, shared with the frontier.

Two things must come together, over the last pages of a part. They said nothing of their own: what is left of them without the
host's template and without the words of URLs is like that of earlier pages. And the part grows without end in sight: its pages lead
to more new URLs of the part than are fetched; or to as many whose names are invented; or to fewer, and the URLs have a proven
pattern: months, sessions, combinations of parameters, segments that repeat, pages that reload themselves under another name.

A page costs a look at its URL. Its words are read only where it leads to new URLs of a part that has not shown its worth yet, and
of one that has, once in :data:`SAMPLE` such pages.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from gossamer.engine.ends import Uses
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.contract import TaskGate
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
    WHAT,
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
from gossamer.storage.ledger.contract import Ledger
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
    """New URLs of the part that it led to; before a look is wanted, perhaps fewer, but none only where there are none."""


#: The rule that refuses tasks of a family which a person has confirmed to be a trap.
CONFIRMED = f"{FOUND}confirmed"


class TrapSheet(Sheet, frozen=True):
    cut: Annotated[bool, setting("Set the URLs of suspected traps aside; if off, only report and count them.")] = True
    confirmed: Annotated[
        tuple[str, ...],
        setting("Refuse the URLs of these families (OWNER SKIPPED PART); `gossamer traps DIR --confirm ID` sets this."),
    ] = ()
    released: Annotated[
        tuple[str, ...],
        setting("Never suspect these families (OWNER SKIPPED PART); `--release ID` sets this."),
    ] = ()
    families: Annotated[
        int,
        setting(
            "Watch at most this many parts of hosts; each takes 500 bytes.",
            unit="families",
            restart="it sizes the memory",
            ge=1,
        ),
    ] = 8_192
    hosts: Annotated[
        int,
        setting(
            "Remember at most this many hosts, with the facts that were learned about each.",
            unit="hosts",
            restart="it sizes the memory",
            ge=1,
        ),
    ] = 16_384


class LearntTraps(Provider[TrapSheet]):
    """Detects traps: parts of a host that grow although their pages say nothing new. Contracts: `Traps`, `Learner`."""

    ledger: Uses[Ledger]
    template: Uses[HostTemplate]
    keeps_state = True

    def __init__(self, sheet: TrapSheet | None = None) -> None:
        super().__init__(sheet)
        decisions(self.sheet)
        self._memory = Memory(self.sheet.families, self.sheet.hosts)
        self._decisions = Decisions(self._memory)
        self._returning: dict[tuple[str, str], Family] = {}
        self._any_suspect = self._has_confirmed = False
        self.metrics.gauge("families", lambda: len(self._memory))

    async def start(self) -> None:
        """Go on from what the ledger knows: hosts are recalled when they are touched."""
        is_known = self.ledger.counters().get(f"learnt:{WHAT}", 0) > 0
        self.go_on(lambda hosts: self.ledger.learnt(hosts, WHAT), is_known=is_known)

    def go_on(self, recall: Recall, *, is_known: bool) -> None:
        """Take back by `recall` what is known of hosts when they are touched; `is_known`: there is something."""
        self._memory.go_on(recall, is_known=is_known)
        self._any_suspect = is_known
        self._decide()

    def changed(self, before: TrapSheet) -> None:
        self._decide()

    def _decide(self) -> None:
        confirmed, released = decisions(self.sheet)
        self._has_confirmed = bool(confirmed)
        self._any_suspect = self._any_suspect or self._has_confirmed
        for family in self._decisions.decide(confirmed, released):
            self._free(family.owner, self._memory.host(family.owner), family.part)

    @property
    def confirmed(self) -> list[Family]:
        return decisions(self.sheet)[0]

    def learnt(self) -> Iterable[Learnt]:
        return self._memory.changed() if self._memory.marked else ()

    # -- learning

    def observe(self, visit: Visit) -> str:
        response = visit.response
        if visit.is_robots:
            return ""  # no part of a site: invented hosts without a robots.txt are not the end of them
        if response.outcome not in (Outcome.OK, Outcome.TRUNCATED) or not visit.is_page:
            if self._any_suspect:
                self._observe_no_page(visit)
            return ""
        if visit.needs_browser and not visit.duplicate_of:
            return ""  # its text is not here, so it is evidence of nothing
        places = self._places(visit)
        wanted = list(map(self._wants_look, places))
        if not any(wanted):
            return ""
        counted = self._counted(visit, places)
        wanting = [place for place, is_wanted in zip(counted, wanted, strict=True) if is_wanted]
        news: dict[str, bool] = {}
        name = ""
        for place in wanting:
            if place.owner not in news:
                news[place.owner] = not says_nothing(visit, place.owner, place.host, self.template)
            name = self._learn(visit, place, has_news=news[place.owner]) or name
        own = next((place for place in places if place.owner == visit.task.host), None)
        if own is not None and news.get(own.owner):
            # A small directory with news is none of those that a trap invents.
            wide = self._memory.part(own.owner, own.host, places[1].name, own.skipped)
            if wide.state is PartState.FRESH and wide.feeding < GRACE:
                own.host.turn(wide, PartState.TRUSTED)
        if name:
            self.metrics.count(f"found:{name}")
        return name

    def _observe_no_page(self, visit: Visit) -> None:
        """A URL of a suspected part that brings nothing leads nowhere: the part ends there. A document is news, if its bytes are
        new."""
        outcome = visit.response.outcome
        is_news = outcome is Outcome.OK and not visit.duplicate_of and not visit.discarded
        if not is_news and outcome not in (Outcome.CLIENT_ERROR, Outcome.NOT_MODIFIED):
            return
        for owner, host, name in list(suspicions_of(visit.task, self._memory)):
            if is_news:
                self._free(owner, host, name)
                continue
            part = host.parts[name]
            part.window.append(NOTHING_NEW)
            del part.window[:-WINDOW]
            self._memory.marked[owner] = None
            self._check_end(visit, owner, host, name)

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
        is_small = is_young(host, wide)
        fed_narrow = fed_wide = fed_rest = 0
        for task in own:
            other, narrower = parts_of(task.url, skipped)
            fed_wide += other == wide
            fed_rest += is_small and is_young(host, other)
            if narrower == narrow:
                fed_narrow = 1
                break  # most pages are not looked at, and their other links need not be told apart
        places = [_Place(name, host, narrow, skipped, fed_narrow), _Place(name, host, wide, skipped, fed_wide)]
        if is_small:
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

    def _counted(self, visit: Visit, places: list[_Place]) -> list[_Place]:
        """These places of a page that is looked at, those of its own directories with all the new URLs that it led to."""
        name, host, wide, skipped, _ = places[1]
        parts = [parts_of(task.url, skipped) for task in visit.new if task.host == name]
        fed = [sum(one == places[0].name for _, one in parts), sum(one == wide for one, _ in parts)]
        if len(places) > 2 and places[2].name == rest_of(host):
            fed.append(sum(one == wide or is_young(host, one) for one, _ in parts))
        return [place._replace(fed=count) for place, count in zip(places, fed, strict=False)] + places[len(fed) :]

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
        self._memory.marked[place.owner] = None
        return False

    def _learn(self, visit: Visit, place: _Place, *, has_news: bool) -> str:
        owner, host, name, skipped, fed = place
        part = self._memory.part(owner, host, name, skipped)
        self._memory.marked[owner] = None
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
        is_trusted = self._decisions.of(owner, name) is False
        if not found or is_trusted or len(host.suspects) >= SUSPECTS_OF_HOST:
            return ""
        host.turn(part, PartState.SUSPECT)
        part.name = FOUND + found
        self._any_suspect = True
        self._returning.pop((owner, name), None)
        return part.name

    def _check_end(self, visit: Visit, owner: str, host: TrapHost, name: str) -> None:
        """Free a part whose last probes led nowhere: it ends after all, as a site of equal pages does."""
        part = host.parts[name]
        if len(visit.url) < LONG_URL and ends(part):
            part.ended = min(part.ended + 1, MOST_ENDS)
            self._free(owner, host, name)

    def _free(self, owner: str, host: TrapHost, name: str) -> None:
        """Trust a part again; what was set aside of it comes back."""
        part = self._memory.part(owner, host, name, host.parts[name].skipped if name in host.parts else 0)
        host.turn(part, PartState.FRESH if part.ended else PartState.TRUSTED)
        part.feeding = 0
        part.window.clear()
        self._memory.marked[owner] = None
        self._returning[owner, name] = Family(owner, name, part.name, part.skipped)

    # -- deciding

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        if not self._has_confirmed:
            return [""] * len(tasks)
        return [CONFIRMED if self._decisions.is_trap(task) else "" for task in tasks]

    def place(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[Family | None]:
        """Shapes are judged once, when tasks are queued."""
        is_new = gate == "schedule"
        shapes = [shape_of(task.url, task.source) for task in tasks] if is_new and self.sheet.cut else []
        if not self.sheet.cut or not (self._any_suspect or any(shapes)):
            return [None] * len(tasks)
        self._memory.recall([task.host for task in tasks])
        found = [self._place(*one) for one in zip(tasks, shapes or [""] * len(tasks), strict=True)]
        for family in filter(None, found):
            self.metrics.count(f"aside:{family.why}")
        return found

    def _place(self, task: Task, shape: str) -> Family | None:
        if task.relation == "seed" or self._decisions.has(task):
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
                self._memory.marked[task.host] = None
            if part.state is PartState.SUSPECT and self._decisions.of(task.host, name) is not False:
                return Family(task.host, name, shape)
        for owner, host, name in suspicions_of(task, self._memory):
            part = host.parts[name]
            return Family(owner, name, part.name, part.skipped)
        return None

    def is_suspect(self, family: Family) -> bool:
        if not self.sheet.cut:
            return False
        decided = self._decisions.of(family.owner, family.part)
        if decided is not None:
            return decided
        host = self._memory.look(family.owner)
        part = host.parts.get(family.part) if host is not None else None
        return part is not None and part.state is PartState.SUSPECT

    def is_confirmed(self, family: Family) -> bool:
        return self._has_confirmed and self._decisions.of(family.owner, family.part) is True

    def returning(self) -> Sequence[Family]:
        if not self._returning:
            return []
        found, self._returning = list(self._returning.values()), {}
        return found


def written(family: Family) -> str:
    """A family as a setting names it."""
    return f"{family.owner} {family.skipped} {family.part}"


def decisions(sheet: TrapSheet) -> tuple[list[Family], list[Family]]:
    """The families that a person takes for traps, and those for none. Raises SettingError: one of them has another form."""
    return [_read(text, "confirmed") for text in sheet.confirmed], [_read(text, "released") for text in sheet.released]


def _read(text: str, name: str) -> Family:
    owner, _, rest = text.partition(" ")
    skipped, space, part = rest.partition(" ")
    if not (owner and space and part and skipped.isdecimal() and len(skipped) < 3):
        raise SettingError(f"traps.{name}: {text!r} is not a family; `gossamer traps DIR` writes them")
    return Family(owner, part, CONFIRMED if name == "confirmed" else "", int(skipped))
