"""The schedule of known pages, in a space of the ledger: nothing of a page is in memory.

Place in the flow: the ledger of revisits (:mod:`gossamer.recrawl.ledger`) puts a page here when its visit ends, in the same
group; the frontier wakes what is due.

A page that is queued has no time: it gets its next when its visit ends, and a kill finds it in the queues.
"""

from itertools import islice
from math import inf

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.unit import Provider
from gossamer.frontier.contract import LEVELS, Outlook, RevisitPolicy
from gossamer.recrawl import learning
from gossamer.recrawl.learning import DUE, ENDED, HOST, KNOWN, PRICE, SCHEDULE, TIME, WOKEN, PastVisits
from gossamer.recrawl.policies import IntervalRules, Price, RevisitSheet
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.values.instants import ChangeHint
from gossamer.values.page_history import USUAL, Belief, KnownPage, believed
from gossamer.values.task import REVISIT, SITEMAPS, Task
from gossamer.values.url import host_of

#: Pages of one host that are queued at once, and seconds after which the host is looked at for more: the new pages of a host that
#: has thousands of known ones due are not kept waiting behind all of them.
_OF_A_HOST, _AGAIN = 32, 30.0

#: Pages of one host that are looked at in one group, where visits of many of them are put off.
_LOOKED_AT = 256

#: Hosts that are looked at in one group.
_HOSTS_AT_ONCE = 32

#: Seconds until it is seen again whether there is room for known pages among the new ones, and how many go before any is counted.
_ROOM_AFTER, _HEAD_START = 1.0, 8

#: A page that is missing is asked for once more after a day at most: it may be an accident.
_MISSED_AFTER = 86_400.0

#: A page whose visit can wait for longer than this share of its interval, when its time has come, goes back. One that could wait
#: for less is visited at once: it would be looked at again and again otherwise.
_SLACK = 0.02

#: A page that waits for a price is looked at again when its age has grown by this share.
_MEANWHILE = 0.5

#: The level at which a page has weight 1: the middle of the eight.
_USUAL_LEVEL = 3

#: A page whose visits bring new URLs, as a list of news does, is worth as much as so many pages more, one for each; up to here.
_MOST_BROUGHT = 7.0

#: A host may be this far ahead of us when it says when a page changed; a later time is a mistake or a lie.
_AHEAD = 86_400.0

#: Counter: news that hosts told of known pages.
SIGNALLED = "revisits:signalled"

#: The kind of sitemaps and feeds, which tell of changes of other pages.
TELLING = "telling"

#: A page that tells of changes is read after a day at most, where the policy follows what it tells: it is worth its pages.
_TELLING_AFTER = 86_400.0

_kept_price = msgspec.msgpack.Decoder(Price)
_encode = msgspec.msgpack.Encoder().encode


def _bounds(sheet: RevisitSheet) -> IntervalRules:
    """The bounds that the settings state for hosts and pages. Raises SettingError for one that cannot be read."""
    return IntervalRules(sheet.intervals, sheet.min_by_host, sheet.max_by_host)


def weight_of(level: int) -> float:
    """The importance of a page that waited at this level; 1 is usual, and each level has half of the one before."""
    return 2.0 ** (_USUAL_LEVEL - min(level, LEVELS - 1))


class RevisitSchedule(Provider[RevisitSheet]):
    """Keeps the known pages and the times of their next visits. Contracts: `Revisits` and `KnownPages` of `frontier.contract`.
    Raises SettingError: bounds of hosts or pages cannot be read."""

    ledger: Uses[Ledger]
    """In whose groups pages are queued."""
    store: Uses[RocksLedger]
    policy: Uses[RevisitPolicy]
    keeps_state = True

    def __init__(self, sheet: RevisitSheet | None = None) -> None:
        super().__init__(sheet)
        self._bounds = _bounds(self.sheet)
        self._next = inf
        self._since = 0.0
        """No host is looked at before: the search need not walk over what was."""
        self._past: PastVisits | None = None
        """Visits without a plan; None where all are planned."""
        self._begun: tuple[int, int] = (0, 0)
        self._price = Price()
        self._usual = USUAL

    def changed(self, before: RevisitSheet) -> None:
        """Take the new bounds, or refuse bad ones. Pages obey them when their next visit is judged."""
        self._bounds = _bounds(self.sheet)

    async def start(self) -> None:
        self.open()

    def open(self) -> None:
        """Open the space; pages visited without a schedule are planned step by step."""
        self.store.spaces.open(SCHEDULE)
        self.store.spaces.open(learning.RATES)
        if (kept := self.store.meta(PRICE)) is not None:
            self._price = _kept_price.decode(kept)
        with self.store.group() as group:
            self._usual = learning.usual(group)
        counters = self.store.counters()
        self._begun = counters.get("visits", 0), counters.get(WOKEN, 0)
        if learning.is_unplanned(self.store):
            self._past = PastVisits(self.store)
        self.look()
        self.metrics.gauge("known", lambda: self.store.counters().get(KNOWN, 0))

    # -- what is known

    def known(self, task: Task) -> KnownPage | None:
        """The record of a task's page; None where it was never visited, or is not visited again."""
        data = self.store.spaces.get(SCHEDULE, task.host, learning.page_key(task.identity))
        return None if data is None else learning.pages.decode(data)

    def kept(self, group: Group, host: str, url: str) -> KnownPage | None:
        """The same of a URL, as it is kept or staged in a group."""
        data = group.get(SCHEDULE, host, learning.page_key(url))
        return None if data is None else learning.pages.decode(data)

    def put(self, group: Group, host: str, url: str, page: KnownPage, before: KnownPage | None) -> None:
        """Stage what is known of a page after a visit, with the time of the next one; `before` was known of it until now."""
        if before is None:
            group.count(KNOWN)
        elif page.visits > before.visits:
            page = learning.learn(group, host, before, page)
        page = msgspec.structs.replace(page, waits=self._interval(group, host, url, page))
        due = self._looked_at(page, page.visited_at)
        self._set(group, host, url, before.due if before is not None else 0.0, page, due)

    def _looked_at(self, page: KnownPage, now: float) -> float:
        """When a page's time has come as things are; with a price, not much later than now, since the price may fall."""
        due = page.visited_at + page.waits
        if not self.policy.is_priced:
            return due
        return min(due, max(page.visited_at + self.sheet.mean_interval, now + _MEANWHILE * (now - page.visited_at)))

    def told(self, group: Group, host: str, url: str, said: ChangeHint, now: float) -> bool:
        """Stage what a host says of a page, how often it changes, or when it changed; it may be due sooner then. Returns
        whether it is news that the page changed: it is known, and was neither visited since nor said to have changed then."""
        page = self.kept(group, host, url)
        if page is None or page.is_gone:
            return False
        kind = f"said-{said.frequency}" if said.frequency else page.kind
        is_news = max(page.visited_at, page.signalled_at) < said.changed_at <= now + _AHEAD
        if is_news:
            page = msgspec.structs.replace(page, signalled=page.signalled + 1, signalled_at=said.changed_at)
        elif kind == page.kind:
            return False
        page = msgspec.structs.replace(page, kind=kind)
        if not page.due:  # it is queued
            group.put(SCHEDULE, host, learning.page_key(url), _encode(page))
        else:
            page = msgspec.structs.replace(page, waits=self._interval(group, host, url, page))
            self._set(group, host, url, page.due, page, max(self._looked_at(page, now), now))
        return is_news

    def _set(self, group: Group, host: str, url: str, before: float, page: KnownPage, due: float) -> None:
        """Stage a page with the time of its next visit; before that is when it was to be, 0 for never."""
        key = learning.page_key(url)
        if before:
            group.delete(SCHEDULE, host, learning.due_key(before, key))
        group.put(SCHEDULE, host, key, _encode(msgspec.structs.replace(page, due=due)))
        group.put(SCHEDULE, host, learning.due_key(due, key), url.encode("utf-8", "surrogateescape"))
        data = group.get(SCHEDULE, host, HOST)
        looked_at, first = (inf, inf) if data is None else learning.times_of(data)
        if due < looked_at:
            learning.look_at(group, host, (due, min(due, first)))
            # If the group fails, the next look finds nothing there, and says so.
            self._since, self._next = min(self._since, due), min(self._next, due)

    def _interval(self, group: Group, host: str, url: str, page: KnownPage) -> float:
        least, most = self._bounds.within(url, host, self.sheet.min_interval, self.sheet.max_interval)
        if page.is_gone:
            return most
        belief: Belief = believed(learning.prior(group, host, page.kind), page.evidence)
        weight = (weight_of(page.level) if self.sheet.weighs else 1.0) * (1 + min(page.brought, _MOST_BROUGHT))
        price = self._price.now(self._usual, self.sheet.mean_interval)
        outlook = Outlook(belief, weight, learning.signals_of(group, host), price, most)
        interval = self.policy.interval(page, outlook)
        if self.policy.is_priced and page.kind == TELLING:
            interval = min(interval, _TELLING_AFTER)
        interval = min(max(interval, least), most)
        return max(min(interval, _MISSED_AFTER), least) if page.missing else interval

    def look_again(self) -> None:
        """Hosts have come from another agent."""
        self._since = 0.0
        self.look()

    def look(self) -> None:
        """See what is due first: a group that staged something is kept."""
        first = next(self.store.spaces.scan(SCHEDULE, None, start=TIME.pack(self._since)), None)
        self._next = inf if first is None else TIME.unpack(first[0][: TIME.size])[0]
        if first is not None:
            self._since = self._next

    # -- what is due

    def next_due(self) -> float:
        """When `wake` will find something, in seconds since the epoch; infinite where there is nothing to visit again."""
        if not self.sheet.is_active:
            return inf
        return 0.0 if self._past is not None else self._next

    def wake(self, now: float, waiting: int) -> int:
        """Queue pages that are due, as far as their share of the requests goes; see the contract."""
        if not self.sheet.is_active:
            return 0
        if self._past is not None:
            self._plan(self._past, now)
        room = self._room(now, waiting)
        if room <= 0:
            self._next = max(self._next, now + _ROOM_AFTER)
            return 0
        found = islice(self.store.spaces.scan(SCHEDULE, None, start=TIME.pack(self._since)), _HOSTS_AT_ONCE)
        woken, keys = 0, [key for key, _ in found if TIME.unpack(key[: TIME.size])[0] <= now]
        if keys:
            with self.ledger.group() as group:
                if self.policy.is_priced:
                    self._usual = learning.usual(group)
                for key in keys:
                    if woken < room:
                        # It leaves even if its host is not there any more: the first entry must not stay for ever.
                        group.delete(SCHEDULE, None, key)
                        woken += self._wake(group, key[TIME.size :].decode(), now, min(_OF_A_HOST, room - woken))
                group.count(WOKEN, woken)
                group.count("discovered", -woken)  # they were when they were new
                self._price.spend(woken)
                group.meta(PRICE, _encode(self._price))
        self.look()
        return woken

    def _room(self, now: float, waiting: int) -> int:
        """How many known pages may be queued. While new ones wait, known ones have their share of the requests of this run; with a
        price, no more are queued than follow from it."""
        counters, rate, room = self.store.counters(), self.sheet.rate, _OF_A_HOST * _HOSTS_AT_ONCE
        if rate < 1 and waiting > counters.get(WOKEN, 0) - counters.get(ENDED, 0):
            visits, woken = counters.get("visits", 0) - self._begun[0], counters.get(WOKEN, 0) - self._begun[1]
            room = int((visits + _HEAD_START) * rate) - woken
        if not self.policy.is_priced:
            return room
        if room <= 0:
            self._price.hold(now)
            return room
        self._price.step(now, counters.get(KNOWN, 0), self.sheet.mean_interval)
        return min(room, self._price.room)

    def _wake(self, group: Group, host: str, now: float, most: int) -> int:
        """Queue up to so many pages of a host, those that are due longest first. Pages whose visit is not worth its price yet
        go back."""
        due, first, following = self._due(group, host, now, most)
        tasks: list[Task] = []
        for at, key, url in due:
            if len(tasks) == most:
                first, following = at, now + _AGAIN
                break
            group.delete(SCHEDULE, host, key)
            task = self._task(group, host, url, now)
            if isinstance(task, Task):
                tasks.append(task)
            elif task is not None:
                first, following = min(first, task), min(following, task)
        learning.look_at(group, host, (following, min(first, following)) if following < inf else None)
        self._since = min(self._since, following)
        group.push(tasks)
        return len(tasks)

    def _due(
        self, group: Group, host: str, now: float, most: int
    ) -> tuple[list[tuple[float, bytes, str]], float, float]:
        """Pages of a host that are due, each with its time and key; the time of the next one, and when to look at that."""
        data = group.get(SCHEDULE, host, HOST)
        start = DUE if data is None else DUE + data[TIME.size :]
        due: list[tuple[float, bytes, str]] = []
        # A host stands in the index once, so that nothing of it is staged yet.
        for key, url in self.store.spaces.scan(SCHEDULE, host, DUE, start):
            at = TIME.unpack(key[1 : 1 + TIME.size])[0]
            if at > now:
                return due, at, at
            if len(due) == (_LOOKED_AT if self.policy.is_priced else most):
                return due, at, now + _AGAIN
            due.append((at, key, url.decode("utf-8", "surrogateescape")))
        return due, inf, inf

    def _task(self, group: Group, host: str, url: str, now: float) -> Task | float | None:
        """The task of another visit; the time to which the visit is put off; None where the crawl has lost the page."""
        page, row = self.kept(group, host, url), self.store.document(url)
        if page is None or row is None:
            learning.drop_page(group, host, url)
            return None
        if self.policy.is_priced:
            waits = self._interval(group, host, url, page)
            if page.visited_at + waits > now + waits * _SLACK:
                page = msgspec.structs.replace(page, waits=waits)
                due = self._looked_at(page, now)
                self._set(group, host, url, 0.0, page, due)
                return due
        group.put(SCHEDULE, host, learning.page_key(url), _encode(msgspec.structs.replace(page, due=0.0)))
        relation = f"{REVISIT} {row.relation}" if row.relation in SITEMAPS else REVISIT
        again = Task(url, host, row.depth, row.source, relation, request=page.request)
        return msgspec.structs.replace(again, etag=page.etag, last_modified=page.last_modified)

    # -- what was visited without a schedule

    def _plan(self, past: PastVisits, now: float) -> None:
        """Plan the next visits of some pages that were visited before there was a schedule."""
        rows = past.take()
        if rows is None:
            past.end()
            self._past = None
            return
        with self.ledger.group() as group:
            for row in rows:
                host = host_of(row.url)
                if self.kept(group, host, row.url) is None:
                    self.put(group, host, row.url, learning.as_known(row, now), None)
