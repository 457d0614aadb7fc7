"""A month of a large crawl by simulation: 10 B known URLs, 100 agents on machines of their own, and machines that are lost.

The designation is the real one: the ring, stretches of it that change hands, and the policy of masters. The bytes and times of a
URL are measured here, by the real codec of the links and the real ledger. All else is arithmetic on a clock of our own: domains
whose sizes are drawn, losses that are drawn, and agents that come back from their store as those of `--cluster joined` do: not
before the lease is over, with all that their last checkpoint has. Sizes, links and the line to the store are guesses.
"""

import heapq
import random
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

import click
import msgspec

from gossamer.agents.designations import LeastLoaded, chosen
from gossamer.agents.joined.link import BEYOND
from gossamer.agents.ring import Ring, moving
from gossamer.backup.options import StoreOptions
from gossamer.bench.harness import BenchReport, Spent
from gossamer.engine.remote.frames import Codec
from gossamer.values.agents import Member, agent_name
from gossamer.values.task import Task
from tools.bench.ledger import opened

#: The crawl of docs/cluster.md: its pages in a month, the URLs that it knows then, and the agents that have them.
PAGES, KNOWN, AGENTS = 1_000_000_000, 10_000_000_000, 100

#: Domains that are drawn; sizes of the largest one at most, as parts of all URLs; the shape of their sizes (Pareto).
DOMAINS, LARGEST, SHAPE = 200_000, (0.002, 0.0001), 1.1

#: Links of a page that lead to other domains; links that lead to such a URL differ as sizes of domains do.
FOREIGN = 18

#: Requests that an agent has in flight, and bytes a second that come from a store.
IN_FLIGHT, LINE = 8, 50e6

#: Bytes of a ledger that a page adds to a checkpoint (docs/benchmarks.md: 420 measured, and 3,000 is the aim).
SHIPPED = 3_000

MONTH, HOUR = 30 * 86_400.0, 3_600.0

#: URLs of which the cost of one is measured; those of one batch of a link.
MEASURED, BATCH = 300_000, 100

#: Machines that are lost in an hour, and seconds between two checkpoints.
LOSSES, EVERY = (0.1, 1.0, 5.0, 20.0), (300.0, 60.0)


class UrlCosts(msgspec.Struct, frozen=True):
    """The cost of one known URL."""

    sent: float
    """Bytes on a link between two agents."""
    coded: float
    """Seconds of CPU of both ends, without TLS and the kernel."""
    kept: float
    """Bytes of a ledger on the disk, of one that is queued."""


def measured(urls: int = MEASURED) -> UrlCosts:
    """Measure a URL, by tasks as pages leave them."""
    hosts = [f"www{number % 3}.site-{number}.example" for number in range(urls // 100)]
    tasks = [
        Task(f"https://{host}/section/page-{number}.html", host, 3, f"https://{host}/section/{number}/", "a href")
        for number in range(urls)
        for host in [hosts[number * 7919 % len(hosts)]]
    ]
    codec: Codec[Task] = Codec("urls", Task, Task, 1 << 20)
    spent, sent = Spent(), 0
    with spent:
        for start in range(0, urls, BATCH):
            frame = codec.pack(start + 1, codec.encode(tasks[start : start + BATCH]))
            sent += len(frame)
            codec.unpack(frame)
    with tempfile.TemporaryDirectory() as folder:
        ledger, _ = opened(folder)
        for start in range(0, urls, 10_000):
            with ledger.group() as group:
                group.push(tasks[start : start + 10_000])
        ledger.close()
        kept = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return UrlCosts(sent / urls, spent.thread / urls, kept / urls)


def sizes(domains: int, largest: float, chance: random.Random) -> dict[str, float]:
    """Domains, and the part of all URLs that each has."""
    drawn = [chance.paretovariate(SHAPE) for _ in range(domains)]
    for _ in range(3):  # a domain that is cut makes the others larger
        most = largest * sum(drawn)
        drawn = [min(one, most) for one in drawn]
    whole = sum(drawn)
    return {f"site-{number}.example": one / whole for number, one in enumerate(drawn)}


def shares(parts: Mapping[str, float], owners: Mapping[str, str], agents: Iterable[str]) -> dict[str, float]:
    """The part of all URLs that each agent has."""
    found = dict.fromkeys(agents, 0.0)
    for domain, owner in owners.items():
        found[owner] += parts[domain]
    return found


def by_ring(parts: Iterable[str], members: Sequence[Member]) -> dict[str, str]:
    ring = Ring(members)
    return {domain: ring.owner(domain) for domain in parts}


def by_masters(parts: Iterable[str], members: Sequence[Member]) -> dict[str, str]:
    """As the policy `least-loaded` gives domains away, in the order in which they are met."""
    policy, counts, owners = LeastLoaded(), dict.fromkeys((one.agent for one in members), 0), dict[str, str]()
    for domain in parts:
        agent = owners[domain] = chosen(policy, domain, members, counts)
        counts[agent] += 1
    return owners


class Month(msgspec.Struct):
    """The outcome of a month."""

    lost: int = 0
    refetched: float = 0.0
    """Pages."""
    away: float = 0.0
    """Seconds in which agents were no one's."""
    longest: float = 0.0
    restored: float = 0.0
    """Bytes that machines took from the store."""
    again: float = 0.0
    """URLs that other agents sent once more, since their receiver was lost before it had published them."""


def month(
    parts: Mapping[str, float], losses: float, every: float, sent: float, kept: float, chance: random.Random
) -> Month:
    """Let a month pass.

    Args:
        parts: the part of all URLs that each agent has.
        losses: machines that are lost in an hour.
        every: seconds between two checkpoints of an agent.
        sent: URLs that all agents send each other in the month.
        kept: bytes of a ledger of each known URL.
    """
    found, lease = Month(), StoreOptions().lease
    agents = list(parts)
    began = {agent: -chance.uniform(0.0, every) for agent in agents}
    """When its last life began, which publishes each `every` seconds from then on; those of the beginning differ."""
    since: dict[str, float] = {}
    """Agents that are away: when they were lost."""
    events: list[tuple[float, str]] = []
    if losses:
        heapq.heappush(events, (chance.expovariate(losses / HOUR), ""))
    while events and (event := heapq.heappop(events))[0] < MONTH:
        now, back = event
        if back:
            if back in since and began[back] == now:
                found.away += now - since[back]
                found.longest = max(found.longest, now - since.pop(back))
            continue
        heapq.heappush(events, (now + chance.expovariate(losses / HOUR), ""))
        agent = chance.choice(agents)
        found.lost += 1
        share = parts[agent]
        if agent not in since:  # else the machine was lost that was bringing it back, and has fetched nothing
            since[agent] = now
            unpublished = (now - began[agent]) % every
            found.refetched += share * PAGES * unpublished / MONTH + IN_FLIGHT
            found.again += share * sent * unpublished / MONTH
        ledger = share * KNOWN * kept * now / MONTH
        found.restored += ledger
        began[agent] = now + lease + BEYOND + ledger / LINE
        heapq.heappush(events, (began[agent], agent))
    found.away += sum(MONTH - at for at in since.values())
    return found


def exchanged(agents: int, chance: random.Random, draws: int = 100_000) -> float:
    """URLs that agents send each other in a month: each agent that finds a URL of another one sends it once, by the first link."""
    mean = PAGES * FOREIGN / KNOWN
    links = [chance.paretovariate(SHAPE) for _ in range(draws)]
    scale = mean / statistics.mean(links)
    finders = ((agents - 1) * (1 - (1 - 1 / agents) ** (one * scale)) for one in links)
    return KNOWN * float(statistics.mean(finders))


@click.option("--agents", type=click.IntRange(2, 1_000), default=AGENTS, show_default=True, help="So many agents.")
@click.option("--domains", type=click.IntRange(1_000), default=DOMAINS, show_default=True, help="Draw so many domains.")
def run(agents: int = AGENTS, domains: int = DOMAINS) -> BenchReport:
    """Simulate it."""
    report, costs, chance = BenchReport("large"), measured(), random.Random(1)
    members = [Member(agent_name(number)) for number in range(agents)]
    sent = exchanged(agents, chance)
    table = report.table(
        f"{domains:,} domains among {agents} agents, by how large the largest ones may be",
        *("largest, of all URLs", "designation", "URLs of an agent, M", "most, M", "of the mean", "least", "deviation"),
    )
    ring: dict[str, float] = {}
    for largest in LARGEST:
        parts = sizes(domains, largest, chance)
        for name, designated in (("the ring", by_ring), ("masters, least-loaded", by_masters)):
            found = shares(parts, designated(parts, members), [one.agent for one in members])
            ring = ring or found
            mean, most, least = statistics.mean(found.values()), max(found.values()), min(found.values())
            figures = (
                f"{mean * KNOWN / 1e6:.0f}",
                f"{most * KNOWN / 1e6:.0f}",
                f"{most / mean:.2f}",
                f"{least / mean:.2f}",
            )
            table.add(f"{largest:.2%}", name, *figures, f"{statistics.pstdev(found.values()) / mean:.1%}")
    table = report.table(f"exchange of URLs, {FOREIGN} links of a page lead to other domains", "what", "figure")
    table.add("bytes of a URL on a link, measured", f"{costs.sent:.0f}")
    table.add("CPU of a URL in both ends, us, measured", f"{costs.coded * 1e6:.1f}")
    table.add("bytes of a queued URL in a ledger, measured", f"{costs.kept:.0f}")
    table.add("URLs sent in the month, billions", f"{sent / 1e9:.1f}")
    table.add("in all, TB", f"{sent * costs.sent / 1e12:.2f}")
    table.add("of an agent, out, kB/s", f"{sent * costs.sent / MONTH / agents / 1e3:.0f}")
    table.add("CPU of all agents, processors", f"{sent * costs.coded / MONTH:.3f}")
    table.add("ledgers in checkpoints, of an agent, kB/s", f"{PAGES * SHIPPED / MONTH / agents / 1e3:.0f}")
    table = report.table(
        f"{PAGES:,} pages and {KNOWN:,} known URLs in a month, {agents} agents whose machines are lost",
        *("lost an hour", "checkpoint each", "lost in the month", "pages fetched again", "of all", "agents away"),
        *("longest, s", "URLs sent again", "from the store, TB"),
    )
    for losses, every in product(LOSSES, EVERY):
        one = month(ring, losses, every, sent, costs.kept, random.Random(2))
        table.add(
            *(f"{losses:g}", f"{every:g} s", f"{one.lost:,}", f"{one.refetched:,.0f}", f"{one.refetched / PAGES:.3%}"),
            *(f"{one.away / (MONTH * agents):.3%}", f"{one.longest:.0f}", f"{one.again / sent:.3%}"),
            f"{one.restored / 1e12:.1f}",
        )
    table = report.table(
        "another number of agents, by the ring",
        *("agents", "URLs that change hands", "at least", "bytes, GB", "busiest giver, GB"),
    )
    for after in (agents - 1, agents + 1, agents + agents // 5):
        given: dict[str, float] = {}
        for (giver, taker), arcs in moving(
            Ring(members), Ring(Member(agent_name(one)) for one in range(after))
        ).items():
            if giver != taker:
                given[giver] = given.get(giver, 0.0) + sum(last - first + 1 for first, last in arcs) / 2**32
        whole, least, size = sum(given.values()), abs(after - agents) / max(after, agents), KNOWN * costs.sent / 1e9
        most = max(given.values())
        table.add(f"{agents} to {after}", f"{whole:.2%}", f"{least:.2%}", f"{whole * size:.1f}", f"{most * size:.2f}")
    return report
