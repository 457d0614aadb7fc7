"""Domains that change hands: which agent has which, which ones move where members change, and the steps of every hand-over.

    note ─► hold ─────────► give ─────────────► take ─────────────► commit ─────────► drop ─► forget the note
    takers   send nothing                        read the parcels,   whose they are
                                                 then send again     is written down
    givers                   write parcels, and                                        forget
                             hand out nothing

Place in the flow: :mod:`membership` hands over while all agents rest (:mod:`parcels` does the steps), :mod:`domain_moves` while
both agents fetch on. What is under way stands in one note (:class:`UnderWay`). A kill leaves it to the next supervisor, which does
it again from the first step; what was done of a step is not done twice. Where a giver cannot give, all is given up; from then on
it is finished. By the ring all of it follows from the members; by masters it is planned by the table that they share.
"""

import shutil
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from gossamer.agents.contract import DesignationPolicy
from gossamer.agents.designations import SCHEMA, agent_at, chosen, designated, loads
from gossamer.agents.ring import Ring, RingDesignation, RingSheet, append, moving
from gossamer.agents.wiring import domain_rule_of, ring_rule
from gossamer.engine.files import Point, crash_at, replace_file
from gossamer.engine.sheet import build
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.moving import Arc, is_in
from gossamer.storage.ledger.parcels import Moved, parcel_path
from gossamer.storage.mailbox.retaining import point_path
from gossamer.storage.mailbox.shared_state import SharedFile
from gossamer.storage.members import division_of, members_of, read_kept, write_kept
from gossamer.values.agents import agent_name, at_work, digest_names, member
from gossamer.values.errors import CrawlDirectoryError, GossamerError
from gossamer.values.hosts import domain_point

#: Where it stands which domains have another agent than the ring says, inside the crawl directory.
_MOVED = "state/supervisor/moved.json"

#: The folder of agents that have lost their ledgers (:mod:`gossamer.agents.lost`), inside the crawl directory.
LOST = "state/supervisor/lost"

#: How a person goes on who has a damaged note.
_ADVICE = "bring it back from a copy"


def read_moved(directory: Path) -> dict[str, str]:
    """Domains that have another agent than the ring says. Raises CrawlDirectoryError: the note is damaged."""
    return read_kept(directory / _MOVED, dict[str, str], _ADVICE) or {}


def write_moved(directory: Path, moved: Mapping[str, str]) -> None:
    write_kept(directory / _MOVED, moved)


# Which agent has which domain.


class DividedByRing:
    """Hosts go by the ring, but for domains that have moved since."""

    def __init__(self, members: Sequence[str], settings: Mapping[str, Any], moved: Mapping[str, str]) -> None:
        """`settings` are those of the crawl's ledgers, `moved` the domains that have another agent than the ring says."""
        self._members = members
        self._moved = moved
        given = {"members": list(members), "moved": as_settings(moved), **ring_rule(settings)}
        self._ring = RingDesignation(build(RingSheet, given))

    def owner(self, host: str) -> str:
        return self._ring.owner(host)

    def arcs(self, agent: str) -> Sequence[Arc]:
        arcs = without_points(Ring(map(member, self._members)).arcs(agent), map(domain_point, self._moved))
        return _merged(arcs, (domain_point(domain) for domain, owner in self._moved.items() if owner == agent))


def as_settings(moved: Mapping[str, str]) -> list[str]:
    return [f"{domain}={agent}" for domain, agent in moved.items()]


class DividedByTable:
    """Hosts go by the table of the masters."""

    def __init__(self, directory: Path, members: Sequence[str], settings: Mapping[str, Any]) -> None:
        self._directory = directory
        self._ring = Ring(map(member, members))
        self._rule = domain_rule_of(settings)

    def owner(self, host: str) -> str:
        """The agent of a host; empty where it has none yet. Raises CrawlDirectoryError."""
        point = domain_point(self._rule.assignable(host))
        if (name := digest_names().get(point)) is not None:
            return self._ring.owner(name)
        with opened_table(self._directory) as shared:
            return agent_at(shared.reading, point) or ""

    def arcs(self, agent: str) -> Sequence[Arc]:
        """The stretches of the circle that an agent has, in order: a point for each domain. Raises CrawlDirectoryError."""
        digests = (point for point, name in digest_names().items() if self._ring.owner(name) == agent)
        with opened_table(self._directory) as shared:
            rows = shared.reading.execute("SELECT DISTINCT point FROM designations WHERE agent = ?", (agent,))
            return as_arcs({*digests, *(point for (point,) in rows)})

    def domains(self, agent: str) -> list[str]:
        with opened_table(self._directory) as shared:
            return [domain for domain, owner in designated(shared.reading) if owner == agent]


Divided = DividedByRing | DividedByTable


def division(directory: Path, members: Sequence[str], settings: Mapping[str, Any], *, by_table: bool) -> Divided:
    """How the domains of a crawl are divided among these members; `settings` are those of its ledgers."""
    if by_table:
        return DividedByTable(directory, members, settings)
    return DividedByRing(members, settings, read_moved(directory))


# Domains change hands where the members of a crawl change; the moves stand by giver and taker.

#: Stretches of the circle in order, by the agents that give and take them.
Moves = Mapping[tuple[str, str], Sequence[Arc]]


def moves_by_ring(
    before: Sequence[str], after: Sequence[str], moved: Mapping[str, str], given: Mapping[str, str] = {}
) -> Moves:
    """The moves where the members of a ring change; `moved` are domains that have another agent than the ring says, and keep it as
    long as it stays, and `given` those that people give to agents."""
    was, becomes, stays = Ring(map(member, before)), Ring(map(member, after)), at_work(after)
    points = list(map(domain_point, {**moved, **given}))
    found = {pair: without_points(arcs, points) for pair, arcs in moving(was, becomes).items()}
    for domain, agent in {**{domain: was.owner(domain) for domain in given}, **moved}.items():
        taker = given.get(domain, agent)
        pair = agent, taker if taker in stays else becomes.owner(domain)
        found[pair] = _merged(found.get(pair, ()), [domain_point(domain)])
    return {(giver, taker): arcs for (giver, taker), arcs in found.items() if arcs and giver != taker}


def left_by_ring(after: Sequence[str], moved: Mapping[str, str]) -> dict[str, str]:
    """The domains that have another agent than the ring says when these are the members."""
    becomes, stays = Ring(map(member, after)), at_work(after)
    return {domain: agent for domain, agent in moved.items() if agent in stays and becomes.owner(domain) != agent}


def moves_by_table(
    directory: Path, before: Sequence[str], after: Sequence[str], assigned: Mapping[str, str], policy: DesignationPolicy
) -> Moves:
    """The moves in the table of the masters: domains that a person has given to agents, and those of agents that leave, for which
    the policy chooses; digests go by the ring. Raises CrawlDirectoryError: the table cannot be read."""
    stays = at_work(after)
    candidates = [one for one in map(member, after) if one.capacity]
    moves: dict[int, tuple[str, str]] = {}
    was, becomes = Ring(map(member, before)), Ring(map(member, after))
    for point, name in digest_names().items():
        if (giver := was.owner(name)) != (taker := becomes.owner(name)):
            moves[point] = giver, taker
    wanted = {domain_point(domain): agent for domain, agent in assigned.items()}
    with opened_table(directory) as shared:
        counts = loads(shared.reading)
        for point, agent, domain in shared.reading.execute("SELECT point, agent, domain FROM designations").fetchall():
            taker = moves[point][1] if point in moves else wanted.get(point, agent)
            if taker not in stays:
                taker = chosen(policy, domain, candidates, counts)
            if taker != agent:
                moves[point] = agent, taker
                counts[agent] -= 1
                counts[taker] = counts.get(taker, 0) + 1
    return _by_pair((*pair, point) for point, pair in moves.items())


def _by_pair(rows: Iterable[tuple[str, str, int]]) -> Moves:
    points: dict[tuple[str, str], set[int]] = defaultdict(set)
    for giver, taker, point in rows:
        points[giver, taker].add(point)
    return {pair: as_arcs(those) for pair, those in points.items()}


def write_to_table(directory: Path, hand_overs: Iterable["HandOver"]) -> None:
    """Let the table of the masters say at once whose all of it is. Raises CrawlDirectoryError: it cannot be written."""
    with opened_table(directory) as shared, shared.writing() as connection:
        for one in hand_overs:
            connection.executemany(
                "UPDATE designations SET agent = ? WHERE point BETWEEN ? AND ?", [(one.taker, *arc) for arc in one.arcs]
            )
        connection.execute("DELETE FROM loads")
        connection.execute("INSERT INTO loads SELECT agent, count(*) FROM designations GROUP BY agent")


@contextmanager
def opened_table(directory: Path) -> Iterator[SharedFile]:
    """The table that masters share. Raises CrawlDirectoryError: it is gone or damaged."""
    with closing(SharedFile(directory)) as shared:
        shared.open(SCHEMA)
        yield shared


def without_points(arcs: Sequence[Arc], points: Iterable[int]) -> list[Arc]:
    """Stretches of the circle without some of its points, in order."""
    found = list(arcs)
    for point in points:
        at = bisect_right(found, point, key=lambda arc: arc[0]) - 1
        if at >= 0 and (arc := found[at])[1] >= point:
            found[at : at + 1] = [part for part in ((arc[0], point - 1), (point + 1, arc[1])) if part[0] <= part[1]]
    return found


def _merged(arcs: Sequence[Arc], points: Iterable[int]) -> list[Arc]:
    return sorted([*arcs, *((point, point) for point in set(points))])


def as_arcs(points: Iterable[int]) -> list[Arc]:
    """Points as stretches of the circle, in order; those that touch are one."""
    arcs: list[Arc] = []
    for point in sorted(points):
        append(arcs, point, point)
    return arcs


def lies_in(arcs: Sequence[Arc], domain: str) -> bool:
    """Whether a domain lies in some stretches of the circle, which are in order."""
    return is_in(arcs, domain_point(domain))


# The hand-overs under way, and their steps.

#: A step of a hand-over in the giver or the taker. `release` undoes a `hold` where a giver cannot give.
Step = Literal["hold", "give", "take", "drop", "release"]


class HandOver(msgspec.Struct, frozen=True):
    """Domains that one agent hands to another."""

    giver: str
    taker: str
    arcs: tuple[Arc, ...]
    """The stretches of the circle that they are, in order."""
    parcel: str
    """The file that the giver writes, inside the crawl directory. A taker knows what it has read by the file's name."""
    domains: tuple[str, ...] = ()
    """Their names, where both agents are at work."""


class UnderWay(msgspec.Struct, frozen=True):
    """The hand-overs that are under way together."""

    hand_overs: tuple[HandOver, ...] | None = None
    """None until it is known what moves: the agents are being prepared."""
    before: tuple[str, ...] = ()
    """The crawl's members; none of a crawl that is about to be divided, and where agents are at work."""
    after: tuple[str, ...] = ()
    by_table: bool = False
    """Masters say whose domains are."""
    is_at_work: bool = False
    """The agents are at work, and go on with it when they work again."""
    division: int = 0
    """The number of the crawl's division from then on, where it has a store; else the members alone make a new one."""
    moved: dict[str, str] | None = None
    """Domains that have another agent than the ring says from then on."""
    behind: tuple[str, ...] = ()
    """Agents that have gone back to before it: they do it again, and the others as far as they have not done it."""
    copies: Literal["", "begun", "made"] = ""
    """Version 0.2.0 let takers copy domains: copies that are made are dropped by the givers, others by the takers."""

    @property
    def givers(self) -> list[str]:
        names = dict.fromkeys(one.giver for one in self.hand_overs or ())
        return [name for name in names if not self.behind or name in self.behind]

    @property
    def takers(self) -> list[str]:
        return list(dict.fromkeys(one.taker for one in self.hand_overs or ()))


#: A giver, its taker, and the domains that it gave.
Gift = tuple[str, str, Moved]

#: Lets agents, at rest or at work, do a step of all hand-overs that they have a part in; returns what was given. Raises
#: GossamerError: one cannot.
DoesStep = Callable[[Step, Sequence[str], UnderWay], Awaitable[Sequence[Gift]]]


async def carry_out(
    directory: Path, work: UnderWay, do: DoesStep, commit: Callable[[], Awaitable[None]]
) -> Sequence[Gift]:
    """Do all of what is under way, from the first step; returns what was given. `commit` writes down whose the domains are. Raises
    GossamerError: a giver cannot give, and nothing has changed; or another step failed, and the note says what is left to do."""
    write_note(directory, work)
    crash_at(Point.JOINING)
    moved: Sequence[Gift] = ()
    if not work.copies:
        await do("hold", work.takers, work)
        try:
            moved = await do("give", work.givers, work)
        except GossamerError:
            await do("release", work.takers, work)
            forget_note(directory)
            raise
        crash_at(Point.JOINING)
        await do("take", work.takers, work)
        crash_at(Point.JOINING)
    await commit()
    crash_at(Point.JOINING)
    await do("drop", work.givers, work)
    crash_at(Point.JOINING)
    forget_note(directory)
    return moved


def planned(moves: Moves, number: int) -> tuple[HandOver, ...]:
    """The hand-overs of moves; `number` is one that no earlier hand-over of the same agents had."""
    paths = {pair: parcel_path(Path(), *pair, number) for pair in moves}
    return tuple(HandOver(*pair, tuple(arcs), str(paths[pair])) for pair, arcs in moves.items())


#: Where parcels of agents at work lie, inside the crawl directory: in no agent's folder, so that they outlive both.
PARCELS = "state/supervisor/parcels"

#: The note of what is under way, inside the crawl directory; and those of older versions.
NOTE = "state/supervisor/under-way.json"
_OLDER_AT_REST, _OLDER_AT_WORK = "state/supervisor/changing.json", "state/supervisor/moving.json"


def write_note(directory: Path, work: UnderWay) -> None:
    write_kept(directory / NOTE, work)
    for older in (_OLDER_AT_REST, _OLDER_AT_WORK):
        (directory / older).unlink(missing_ok=True)


def under_way(directory: Path) -> UnderWay | None:
    """The hand-overs that are under way, if there are any. Raises CrawlDirectoryError: its note is damaged."""
    return read_kept(directory / NOTE, UnderWay, _ADVICE) or _older(directory)


#: The last change of a crawl with a store, in the supervisor's folder and in that of each agent, and so in the checkpoints of those
#: that have made it.
_LAST = "last-change.json"


def note_change(directory: Path, work: UnderWay) -> None:
    for name in {"supervisor", *(member(text).agent for text in (*work.before, *work.after))}:
        if (folder := directory / STATE_DIRECTORY / name).is_dir():
            replace_file(folder / _LAST, msgspec.json.encode(work))


def last_change(directory: Path, agents: Iterable[str]) -> UnderWay | None:
    """The change by which the present division came, as the supervisor or one of these agents knows it. Raises CrawlDirectoryError:
    a note is damaged."""
    places = (directory / STATE_DIRECTORY / name / _LAST for name in ("supervisor", *agents))
    notes = (read_kept(place, UnderWay, _ADVICE) for place in places)
    return next((work for work in notes if work is not None and work.division == division_of(directory)), None)


def refuse_on_the_way(directory: Path) -> None:
    """Refuse what needs all of a crawl in its ledgers: a parcel has what no ledger is asked for. Raises CrawlDirectoryError: hosts
    are on their way between two agents."""
    work = under_way(directory)
    if work is not None and work.hand_overs is not None:
        raise CrawlDirectoryError(
            f"hosts of the crawl in {directory} were just changing hands between its agents; "
            f"gossamer resume {directory} finishes that"
        )


def forget_note(directory: Path) -> None:
    """All is done, or given up. With a store parcels stay until the store has what their takers made of them."""
    if not keeps_parcels(directory):
        forget_parcels(directory)
    for note in (_OLDER_AT_REST, _OLDER_AT_WORK, NOTE):
        (directory / note).unlink(missing_ok=True)


def is_moving(directory: Path) -> bool:
    """Whether domains are on their way from one agent to another, which both go on with when they work, or an agent that has lost
    its ledger is being told what others know."""
    work = under_way(directory)
    return bool(work and work.is_at_work) or any(not note.suffix for note in (directory / LOST).glob("*"))


def is_changing(directory: Path) -> bool:
    """Whether domains are changing hands while all agents rest."""
    work = under_way(directory)
    return bool(work and not work.is_at_work)


def keeps_parcels(directory: Path) -> bool:
    return point_path(directory, agent_name(0)).exists()


def forget_parcels(directory: Path) -> None:
    for folder in (directory / STATE_DIRECTORY).glob("*/parcels"):
        shutil.rmtree(folder, ignore_errors=True)


# Hand-overs that older versions have begun.

_MOVES = """
CREATE TABLE IF NOT EXISTS moves (point INTEGER PRIMARY KEY, giver TEXT NOT NULL, taker TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS moved (is_made INTEGER NOT NULL);
"""


class OlderNote(msgspec.Struct, frozen=True):
    """A note of an older version: of a move at work, or of a change of members."""

    name: str = ""
    giver: str = ""
    taker: str = ""
    domains: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    by_table: bool = False
    by_parcels: bool = False
    """Not so in 0.2.0."""
    number: int = 0


def _older(directory: Path) -> UnderWay | None:
    """The hand-over that an older version has begun. It committed before it took, or after it had copied; the rest was given up."""
    if (move := read_kept(directory / _OLDER_AT_WORK, OlderNote, _ADVICE)) is not None:
        arcs = tuple(as_arcs(map(domain_point, move.domains)))
        one = HandOver(move.giver, move.taker, arcs, f"{PARCELS}/{move.name}", move.domains)
        return UnderWay((one,), is_at_work=True)
    if (older := read_kept(directory / _OLDER_AT_REST, OlderNote, _ADVICE)) is None:
        return None
    moves: Moves = {}
    if older.by_table:
        with closing(SharedFile(directory)) as shared:
            shared.open(_MOVES)
            moves = _by_pair(shared.reading.execute("SELECT giver, taker, point FROM moves"))
            is_committed = bool(shared.reading.execute("SELECT EXISTS (SELECT 1 FROM moved)").fetchone()[0])
    else:
        is_committed = older.before != older.after == members_of(directory)
        if older.before:
            moves = moves_by_ring(older.before, older.after, read_moved(directory))
    is_copied = not older.by_parcels and bool(older.before)
    return UnderWay(
        planned(moves, older.number) if is_committed or is_copied else None,
        *(older.before, older.after, older.by_table),
        copies=("made" if is_committed else "begun") if is_copied else "",
    )
