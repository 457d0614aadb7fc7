"""PageRank of a crawl's link graph: how important each URL and each host is by the links that lead to it.

Place in the flow: `gossamer rank` calls :func:`rank_crawl`, which reads `links` and writes the tables `ranks` and `host_ranks`.
Brin and Page, "The anatomy of a large-scale hypertextual web search engine" (1998). A URL that was linked and never fetched
has a rank too: that is what tells which page to fetch next. DuckDB numbers the URLs, NumPy does the sums: 32 bytes a link and
40 a URL.

URLs are told apart by hashes of 64 bits while they are counted: among ten million, two have the same one in one crawl of 300,000.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gossamer.engine.errors import refusing
from gossamer.query.database import Database
from gossamer.query.schema import mark_of, words
from gossamer.storage.recovery import changing
from gossamer.storage.tables.places import RANKS, TABLES
from gossamer.values.errors import UsageError
from gossamer.values.task import RELATIONS

#: The chance that a reader follows a link rather than begins anywhere (the paper's).
DAMPING = 0.85

#: Ranks add up to 1. The sum is done when all of them together changed by less than this, or after so many rounds.
ENOUGH, MOST_ROUNDS = 1e-6, 100

#: Memory that DuckDB may take while it numbers URLs; beyond, it spills to the disk.
MEMORY = "2GB"

Numbers = NDArray[np.int32]
Ranks = NDArray[np.float64]


def pagerank(sources: Numbers, targets: Numbers, count: int) -> tuple[Ranks, int]:
    """The rank of each of `count` nodes, numbered from 0, which add up to 1, and the rounds that it took. A link leads from
    each of `sources` to the target at the same place."""
    if not count:
        return np.zeros(0), 0
    degrees = np.bincount(sources, minlength=count)
    share: Ranks = DAMPING / np.maximum(degrees, 1)
    ends = degrees == 0
    ranks: Ranks = np.full(count, 1 / count)
    # NumPy would make numbers of this size of them in each round.
    places, taken = targets.astype(np.intp), sources.astype(np.intp)
    passing: Ranks = np.empty(len(taken))
    rounds = 0
    while rounds < MOST_ROUNDS:
        rounds += 1
        np.take(ranks * share, taken, out=passing, mode="clip")
        passed: Ranks = np.bincount(places, weights=passing, minlength=count).astype(np.float64, copy=False)
        # A surfer on a page without links begins anywhere.
        passed += (1 - DAMPING + DAMPING * ranks[ends].sum()) / count
        change = np.abs(passed - ranks).sum()
        ranks = passed
        if change < ENOUGH:
            break
    return ranks, rounds


def rank_crawl(directory: Path) -> tuple[int, int, int]:
    """Rank what a crawl has found, and put the tables `ranks` and `host_ranks` in the place of earlier ones;
    returns how many URLs and links there are, and the rounds that it took.
    Raises UsageError: they cannot be written."""
    with Database(directory, memory=MEMORY) as database:
        database.keep(
            "rank_links",
            f"SELECT {mark_of('source')} AS source, {mark_of('target')} AS target FROM links "
            f"WHERE NOT nofollow AND source <> target AND relation NOT IN ({words(RELATIONS)})",
        )
        database.keep(
            "rank_nodes",
            "SELECT h, CAST(row_number() OVER () - 1 AS INTEGER) AS id FROM "
            "(SELECT source AS h FROM rank_links UNION SELECT target FROM rank_links)",
        )
        links = database.arrays(
            "SELECT s.id AS source, t.id AS target FROM rank_links l "
            "JOIN rank_nodes s ON s.h = l.source JOIN rank_nodes t ON t.h = l.target"
        )
        [(count,)] = database.ask("SELECT count(*) FROM rank_nodes")
        sources, targets = links["source"], links["target"]
        ranks, rounds = pagerank(sources, targets, count)
        _keep_ranks(database, ranks, sources, targets)
        for name in RANKS:
            folder = directory / TABLES / name
            with refusing(UsageError, f"{folder} cannot be written"), changing(folder):
                database.write_parquet(f"SELECT * FROM made_{name}", folder / f"{name}.parquet")
    return count, len(sources), rounds


def _keep_ranks(database: Database, ranks: Ranks, sources: Numbers, targets: Numbers) -> None:
    count = len(ranks)
    numbered: Mapping[str, NDArray[Any]] = {
        "id": np.arange(count, dtype=np.int32),
        "rank": ranks,
        "importance": importance(ranks),
        "links_in": np.bincount(targets, minlength=count),
        "links_out": np.bincount(sources, minlength=count),
    }
    database.lend("rank_values", numbered)
    database.keep("rank_urls", f"SELECT {mark_of('url')} AS h, url FROM pages")
    # Most URLs that are linked are those of pages, which are read at once; the texts of the others are looked for by hash.
    database.keep("rank_missing", "SELECT h FROM rank_nodes WHERE h NOT IN (SELECT h FROM rank_urls)")
    database.keep(
        "rank_others",
        f"SELECT {mark_of('url')} AS h, any_value(url) AS url "
        "FROM (SELECT target AS url FROM links UNION ALL SELECT source FROM links) "
        f"WHERE (SELECT count(*) FROM rank_missing) > 0 AND {mark_of('url')} IN (SELECT h FROM rank_missing) GROUP BY 1",
    )
    database.keep(
        "rank_hosted",
        "SELECT v.id, u.url, host(u.url) AS host, v.rank, v.importance, v.links_in, v.links_out FROM rank_values v "
        "JOIN rank_nodes n ON n.id = v.id JOIN (SELECT * FROM rank_urls UNION ALL SELECT * FROM rank_others) u ON u.h = n.h",
    )
    database.keep(
        "made_ranks", "SELECT url, host, rank, importance, links_in, links_out FROM rank_hosted ORDER BY rank DESC, url"
    )
    _keep_host_ranks(database, sources, targets, count)


def _keep_host_ranks(database: Database, sources: Numbers, targets: Numbers, count: int) -> None:
    """Rank hosts by the links between them: a site is as important as the sites that link to it say, however many pages it has."""
    hosts = database.arrays(
        "SELECT host, sum(rank) AS rank, count(*) AS urls FROM rank_hosted GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    numbers = np.arange(len(hosts["host"]), dtype=np.int32)
    database.lend("host_numbers", {"host": hosts["host"], "number": numbers})
    placed = database.arrays("SELECT r.id, h.number FROM rank_hosted r JOIN host_numbers h ON h.host = r.host")
    host_of = np.zeros(count, dtype=np.int64)
    host_of[placed["id"]] = placed["number"]
    total = max(1, len(numbers))
    # A link between two hosts counts once, or a menu would speak for a whole site.
    here, there = host_of[sources], host_of[targets]
    # NumPy's own `unique` takes ten times as long for ten million of them: it makes a hash table.
    ordered = np.sort((here * total + there)[here != there])
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    pairs = ordered[is_first]
    begins, ends = (pairs // total).astype(np.int32), (pairs % total).astype(np.int32)
    sites, _ = pagerank(begins, ends, len(numbers))
    values = {
        **hosts,
        "site_rank": sites,
        "importance": importance(sites),
        "hosts_in": np.bincount(ends, minlength=len(numbers)),
    }
    database.lend("host_values", values)
    database.keep(
        "made_host_ranks",
        "SELECT host, rank, site_rank, importance, hosts_in, urls FROM host_values ORDER BY site_rank DESC, rank DESC, host",
    )


def importance(ranks: Ranks) -> Ranks:
    """Ranks on a scale from 0 to 1 by their orders of magnitude: ranks fall so steeply that all but a few would be 0 otherwise."""
    if not len(ranks) or ranks.min() == ranks.max():
        return np.full(len(ranks), 0.5)
    logs = np.log(ranks)
    return np.asarray((logs - logs.min()) / (logs.max() - logs.min()))


def importance_lines(directory: Path, most: int) -> Iterator[str]:
    """The lines of a file by which a later crawl knows what is important: hosts first, then the `most` highest URLs."""
    with Database(directory) as database:
        for host, value in database.ask(
            "SELECT host, importance FROM host_ranks WHERE host <> '' ORDER BY site_rank DESC, rank DESC, host"
        ):
            yield f"{value:.4f}\t{host}\n"
        for url, value in database.ask("SELECT url, importance FROM ranks ORDER BY rank DESC, url LIMIT ?", [most]):
            yield f"{value:.4f}\t{url}\n"
