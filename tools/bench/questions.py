"""What questions to a large crawl cost: SQL over its links, reports and PageRank, over tables that nobody crawled.

Tables of pages and links are made as large as wanted. Rows are drawn by hashes of their numbers, so that every machine asks
the same: hosts of unequal size, links that favour the first pages of a host, a share of dead ends. Columns that no question
here reads are left out.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gossamer.bench.harness import pages_option
from gossamer.bench.report import BenchReport
from gossamer.query.database import Database
from gossamer.query.engine import ParquetWriter
from gossamer.query.ranking import rank_crawl
from gossamer.query.reports import SPECS, make_report
from gossamer.storage.tables.places import CRAWL_FILE, TABLES

#: Hosts of the made crawl, and how many pages lie in one Parquet file, as the converter's 32 MB of rows hold about that many.
HOSTS, PAGES_OF_A_FILE = 5_000, 100_000

#: The URL of the page of a number. A host's share of the pages falls with its own number, as on the web.
_URL = (
    "format('https://www.site-{{}}.example/section-{{}}/page-{{}}.html', "
    f"(hash({{n}}) % {HOSTS} * (hash({{n}} + 7) % 1000) // 1000)::INTEGER, ({{n}} % 97)::INTEGER, {{n}})"
)


def url_of(number: str) -> str:
    """SQL of the URL of a page, from SQL of its number."""
    return _URL.format(n=f"({number})")


def make_tables(directory: Path, pages: int, links: int) -> None:
    """Write `pages` and `links` of a crawl into an empty directory.

    Args:
        directory: becomes a crawl directory.
        pages: how many; every fiftieth is a dead link, every hundredth a redirect.
        links: how many, in all.
    """
    (directory / CRAWL_FILE).touch()
    each = max(1, links // pages)
    with ParquetWriter() as writer:
        for start in range(0, pages, PAGES_OF_A_FILE):
            end = min(pages, start + PAGES_OF_A_FILE)
            name = f"agent-00-20260301120000-{start:08x}-000001.parquet"
            writer.write(_pages(start, end), directory / TABLES / "pages" / name)
            writer.write(_links(start, end, pages, each), directory / TABLES / "links" / name)


def _pages(start: int, end: int) -> str:
    outcome = "CASE WHEN n % 50 = 49 THEN 'client_error' WHEN n % 100 = 50 THEN 'redirect' ELSE 'ok' END"
    return f"""
    SELECT url, split_part(url, '/', 3) AS host, split_part(url, '/', 3)[5:] AS domain, outcome,
           CASE outcome WHEN 'ok' THEN 200 WHEN 'redirect' THEN 301 ELSE 404 END::INTEGER AS status,
           'text/html' AS mime, 'text/html' AS media_type, 'Page ' || n AS title, 'en' AS language, 3::INTEGER AS depth,
           TIMESTAMP '2026-03-01 12:00:00' + INTERVAL 1 SECOND * n AS fetched_at, (hash(n) % 900)::DOUBLE AS elapsed_ms,
           30000 + n % 1000 AS bytes, 1::INTEGER AS attempt, 'a href' AS relation, format('{start:08x}-{{:012d}}', n) AS visit
    FROM (SELECT n, {url_of("n")} AS url, {outcome} AS outcome FROM range({start}, {end}) t(n))
    """


def _links(start: int, end: int, pages: int, each: int) -> str:
    chance = "(hash(n, k) % 1000003) / 1000003.0"
    target = f"({chance} * {chance} * {pages})::BIGINT"
    return f"""
    SELECT *, split_part(source, '/', 3) AS source_host, split_part(target, '/', 3) AS target_host
    FROM (SELECT {url_of("n")} AS source, {url_of(target)} AS target,
           CASE WHEN k = 0 AND n % 100 = 50 THEN 'redirect' ELSE 'a href' END AS relation,
           'a link ' || k AS anchor, k % 20 = 19 AS nofollow, format('{start:08x}-{{:012d}}', n) AS visit
          FROM range({start}, {end}) t(n), range({each}) u(k) ORDER BY n, k)
    """


#: Pages and links of the crawl.
PAGES, LINKS = 1_000_000, 10_000_000

REPEATS = 3

#: Rows of a section, as a terminal shows them.
_ROWS = 20

#: Questions in SQL.
SQL = {
    "links by host": "SELECT source_host, count(*) FROM links GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
    "links by the host that they lead to": "SELECT target_host, count(*) FROM links GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
    "pages by outcome": "SELECT outcome, count(*) FROM pages GROUP BY 1",
}


def _seconds(ask: Callable[[], object]) -> tuple[float, float]:
    """Least seconds and least processor seconds of some runs."""
    walls, works = [], []
    for _ in range(REPEATS):
        began, worked = time.perf_counter(), time.process_time()
        ask()
        walls.append(time.perf_counter() - began)
        works.append(time.process_time() - worked)
    return min(walls), min(works)


@pages_option(PAGES, "Make tables of this many pages.")
def run(pages: int = PAGES) -> BenchReport:
    """Make the tables, and ask."""
    report = BenchReport("questions")
    links = pages * (LINKS // PAGES)
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        directory = Path(folder)
        make_tables(directory, pages, links)
        table = report.table(f"{pages:,} pages, {links:,} links", "question", "seconds", "of CPU")
        for name, sql in SQL.items():
            with Database(directory) as database:
                database.ask("SELECT 1 FROM pages LIMIT 1")
                wall, work = _seconds(partial(_asked, database, sql))
            table.add(name, f"{wall:.2f}", f"{work:.2f}")
        for name in SPECS:
            wall, work = _seconds(partial(_reported, directory, name))
            table.add(f"report {name}", f"{wall:.2f}", f"{work:.2f}")
        wall, work = _seconds(partial(rank_crawl, directory))
        table.add("rank: PageRank, and its tables", f"{wall:.2f}", f"{work:.2f}")
    return report


def _asked(database: Database, sql: str) -> None:
    list(database.ask(sql))


def _reported(directory: Path, name: str) -> None:
    with Database(directory) as database:
        make_report(database, SPECS[name], _ROWS)
