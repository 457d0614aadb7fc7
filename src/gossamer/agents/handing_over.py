"""Which domains change hands, and when: because members change, or because a person gives a domain to an agent.

Place in the flow: :mod:`membership` asks it what to move while all agents rest, and :mod:`roster` which agent has a host. By the
ring all of this follows from the members. By the table that masters share, moves are written down first; one transaction then
lets all of them come true.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.contract import DesignationPolicy
from gossamer.agents.designations import SCHEMA, agent_at, chosen, designated, give, loads
from gossamer.agents.ring import Arc, Ring, RingDesignation, RingSheet, moving
from gossamer.agents.wiring import domain_rule_of, ledger_settings, ring_rule
from gossamer.engine.files import replace_file
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.storage.mailbox.shared_state import SharedFile, count_older_mail
from gossamer.storage.members import crawl_id
from gossamer.values.agents import at_work, digest_names, member
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.hosts import domain_point, given_host

_MOVES = """
CREATE TABLE IF NOT EXISTS moves (point INTEGER PRIMARY KEY, giver TEXT NOT NULL, taker TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS moved (is_made INTEGER NOT NULL);
"""


#: Agents that get domains, each with stretches of the circle, in order.
Heirs = Mapping[str, Sequence[Arc]]

#: Where it stands which domains have another agent than the ring says, inside the crawl directory.
_MOVED = "state/supervisor/moved.json"


#: The note of domains that are moving while agents work (:mod:`gossamer.agents.domain_moves`), inside the crawl directory.
MOVING = "state/supervisor/moving.json"


#: The folder of agents that have lost their ledgers (:mod:`gossamer.agents.lost`), inside the crawl directory.
LOST = "state/supervisor/lost"


def is_moving(directory: Path) -> bool:
    """Whether domains are on their way from one agent to another, which both go on with when they work, or an agent that has lost
    its ledger is being told what others know."""
    return (directory / MOVING).exists() or any(not note.suffix for note in (directory / LOST).glob("*"))


def read_moved(directory: Path) -> dict[str, str]:
    """Domains that have another agent than the ring says. Raises CrawlDirectoryError: the note is damaged."""
    path = directory / _MOVED
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; bring it back from a copy") from None


def write_moved(directory: Path, moved: Mapping[str, str]) -> None:
    if moved:
        replace_file(directory / _MOVED, msgspec.json.encode(moved))
    else:
        (directory / _MOVED).unlink(missing_ok=True)


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
        with _opened(self._directory) as shared:
            return agent_at(shared.reading, point) or ""

    def arcs(self, agent: str) -> Sequence[Arc]:
        """The stretches of the circle that an agent has, in order: a point for each domain. Raises CrawlDirectoryError."""
        digests = (point for point, name in digest_names().items() if self._ring.owner(name) == agent)
        with _opened(self._directory) as shared:
            rows = shared.reading.execute("SELECT DISTINCT point FROM designations WHERE agent = ?", (agent,))
            return as_arcs({*digests, *(point for (point,) in rows)})

    def domains(self, agent: str) -> list[str]:
        with _opened(self._directory) as shared:
            return [domain for domain, owner in designated(shared.reading) if owner == agent]


class RingMoves:
    """The domains that change hands where the members of a ring change. Nothing has to be written down."""

    def __init__(self, before: Sequence[str], after: Sequence[str], moved: Mapping[str, str]) -> None:
        """`moved` are domains that have another agent than the ring says; they keep it as long as it stays."""
        self._before, self._after, self._moved = before, after, moved

    def of(self, giver: str) -> Iterator[tuple[str, Sequence[Arc]]]:
        """The agents that get domains of one, and which stretches of the circle they are."""
        before, after = Ring(map(member, self._before)), Ring(map(member, self._after))
        stays = set(at_work(self._after))
        homeless = [domain for domain, agent in self._moved.items() if agent == giver and agent not in stays]
        points = list(map(domain_point, self._moved))
        for taker in at_work(self._after):
            if taker != giver:
                own = [domain_point(domain) for domain in homeless if after.owner(domain) == taker]
                if arcs := _merged(without_points(moving(before, after, giver, taker), points), own):
                    yield taker, arcs

    def left(self) -> dict[str, str]:
        """The domains that have another agent than the ring says when all is done."""
        after, stays = Ring(map(member, self._after)), set(at_work(self._after))
        return {
            domain: agent for domain, agent in self._moved.items() if agent in stays and after.owner(domain) != agent
        }


class TableMoves:
    """The domains that change hands in the table of the masters. It is written down in the shared file until it is done."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def plan(
        self, before: Sequence[str], after: Sequence[str], assigned: Mapping[str, str], policy: DesignationPolicy
    ) -> None:
        """Write down what is to move.

        Args:
            after: the members that there are to be.
            policy: chooses for the domains of those that leave.

        Raises:
            CrawlDirectoryError: it cannot be written. Nothing has changed.
        """
        stays = set(at_work(after))
        candidates = [one for one in map(member, after) if one.capacity]
        moves: dict[int, tuple[str, str]] = {}
        was, becomes = Ring(map(member, before)), Ring(map(member, after))
        for point, name in digest_names().items():
            if (giver := was.owner(name)) != (taker := becomes.owner(name)):
                moves[point] = giver, taker
        with _opened(self._directory) as shared, shared.writing() as connection:
            counts = loads(connection)
            wanted = {domain_point(domain): agent for domain, agent in assigned.items()}
            for point, agent, domain in connection.execute("SELECT point, agent, domain FROM designations").fetchall():
                taker = moves[point][1] if point in moves else wanted.get(point, agent)
                if taker not in stays:
                    taker = chosen(policy, domain, candidates, counts)
                if taker != agent:
                    moves[point] = agent, taker
                    counts[agent] -= 1
                    counts[taker] = counts.get(taker, 0) + 1
            connection.execute("DELETE FROM moves")
            connection.executemany(
                "INSERT INTO moves VALUES (?, ?, ?)", [(point, *pair) for point, pair in moves.items()]
            )
            connection.execute("DELETE FROM moved")

    def of(self, giver: str) -> Iterator[tuple[str, Sequence[Arc]]]:
        """The agents that get domains of one, and which points of the circle they are."""
        with _opened(self._directory) as shared:
            rows = shared.reading.execute("SELECT taker, point FROM moves WHERE giver = ?", (giver,)).fetchall()
        points: dict[str, set[int]] = {}
        for taker, point in rows:
            points.setdefault(taker, set()).add(point)
        for taker, those in points.items():
            yield taker, as_arcs(those)

    def make(self) -> None:
        """Let all of it come true at once. Raises CrawlDirectoryError: it did not."""
        with _opened(self._directory) as shared, shared.writing() as connection:
            connection.execute(
                "UPDATE designations SET agent = (SELECT taker FROM moves WHERE moves.point = designations.point) "
                "WHERE point IN (SELECT point FROM moves)"
            )
            connection.execute("DELETE FROM loads")
            connection.execute("INSERT INTO loads SELECT agent, count(*) FROM designations GROUP BY agent")
            connection.execute("INSERT INTO moved VALUES (1)")

    def are_made(self) -> bool:
        with _opened(self._directory) as shared:
            return bool(shared.reading.execute("SELECT EXISTS (SELECT 1 FROM moved)").fetchone()[0])

    def forget(self) -> None:
        with _opened(self._directory) as shared, shared.writing() as connection:
            connection.execute("DELETE FROM moves")
            connection.execute("DELETE FROM moved")


@contextmanager
def _opened(directory: Path) -> Iterator[SharedFile]:
    with closing(SharedFile(directory)) as shared:
        shared.open(SCHEMA + _MOVES)
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
        if arcs and arcs[-1][1] == point - 1:
            arcs[-1] = arcs[-1][0], point
        else:
            arcs.append((point, point))
    return arcs


def lies_in(arcs: Sequence[Arc], domain: str) -> bool:
    """Whether a domain lies in some stretches of the circle, which are in order."""
    point = domain_point(domain)
    at = bisect_right(arcs, point, key=lambda arc: arc[0]) - 1
    return at >= 0 and arcs[at][1] >= point


def give_now(directory: Path, assigned: Mapping[str, str]) -> dict[str, str]:
    """Give domains that no agent has yet to agents: nothing has to move.

    Returns:
        Those that another agent has.

    Raises:
        CrawlDirectoryError: the table cannot be read or written.
    """
    taken: dict[str, str] = {}
    with _opened(directory) as shared, shared.writing() as connection:
        for domain, agent in assigned.items():
            owner = agent_at(connection, domain_point(domain))
            if owner is None or owner == agent:
                give(connection, {domain: agent})
            else:
                taken[domain] = agent
    return taken


def mail_waits(directory: Path) -> bool:
    with _opened(directory) as shared:
        return count_older_mail(shared.reading) > 0


# Domains that people give to agents: `gossamer designations DIR --assign DOMAIN=AGENT`. A domain without an agent is given away at
# once, in the table that masters share. One that an agent has moves with its queue while all agents rest, so it is a wish until
# then, in a note of the crawl's state.

#: The note of what people have said, inside the crawl directory.
_WISHES = "state/supervisor/assigned.json"


def check_shared(directory: Path) -> None:
    """Refuse a crawl whose masters have lost what they share, or have another crawl's. Raises CrawlDirectoryError: that is so."""
    with closing(SharedFile(directory, crawl=crawl_id(directory))):
        pass


def read_wishes(directory: Path) -> dict[str, str]:
    """Domains that are to move to agents. Raises CrawlDirectoryError: the note is damaged."""
    path = directory / _WISHES
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; remove it, and assign the domains again") from None


def forget_wishes(directory: Path, done: Mapping[str, str]) -> None:
    left = {domain: agent for domain, agent in read_wishes(directory).items() if done.get(domain) != agent}
    if left:
        replace_file(directory / _WISHES, msgspec.json.encode(left))
    else:
        (directory / _WISHES).unlink(missing_ok=True)


def given_domains(wanted: Mapping[str, str], agents: Sequence[str], wiring: Wiring) -> dict[str, str]:
    """The domains that a person gives to agents, by domains or hosts of them. Raises UsageError: one is no domain, or belongs
    to the crawl itself; or there is no such agent at work."""
    domains = domain_rule_of(ledger_settings(wiring))
    given: dict[str, str] = {}
    for name, agent in wanted.items():
        if agent not in agents:
            raise UsageError(f"{agent!r} is not an agent at work in this crawl; choose one of {', '.join(agents)}")
        domain = domains.assignable(given_host(name))
        if domain_point(domain) in digest_names():
            raise UsageError(f"{domain} is always assigned by the ring, and cannot be given to another agent")
        given[domain] = agent
    return given


def assign(directory: Path, wiring: Wiring, members: tuple[str, ...], wanted: Mapping[str, str]) -> dict[str, str]:
    """Give domains to agents: at once where nothing has to move; of the others it is noted.

    Args:
        wanted: domains, or hosts of them, with the names of agents.

    Returns:
        The domains that move when all agents rest, with their agents.

    Raises:
        UsageError: one is no domain, or belongs to the crawl itself; or there is no such agent at work. Nothing has changed.
        CrawlDirectoryError: what masters share cannot be read or written.
    """
    from gossamer.agents.masters import masters_of  # few commands give domains away

    if not masters_of(directory):
        raise UsageError(
            f"the crawl in {directory} divides its domains by the ring, and gives one to another agent only while it runs; "
            "start it with gossamer resume"
        )
    given = given_domains(wanted, at_work(members), wiring)
    later = give_now(directory, given)
    if later:
        path = directory / _WISHES
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode({**read_wishes(directory), **later}))
    return later


def told_of_assigned(wanted: Mapping[str, str], later: Mapping[str, str], how: str) -> str:
    """What became of domains that a person gave to agents, in words; `how` says when those move that have to."""
    lines = [f"{domain} moves to {agent} {how}" for domain, agent in later.items()]
    if len(later) < len(wanted):
        lines.append(
            "the other domains had no agent, and are assigned at once"
            if later
            else "assigned at once: nothing has to move"
        )
    return "\n".join(lines)
