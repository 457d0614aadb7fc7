"""What questions to a large crawl cost: SQL over its links, reports and PageRank, over tables that nobody crawled.

The quickest of several runs counts, since nothing makes a run quicker than it is. The first question of all finds out whether any
URL was visited twice, and notes it.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gossamer.bench.madecrawl import make_tables
from gossamer.bench.report import BenchReport
from gossamer.query.database import Database
from gossamer.query.ranking import rank_crawl
from gossamer.query.reports import SPECS, make_report

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
