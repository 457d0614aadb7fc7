"""Statistics of the web that a crawl goes through: a consumer of its records, a wiring, a report. See README.md."""

import argparse
import html
import math
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.crawls.compiling import shipped
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.wiring import ComponentPlan, Wiring, to_toml
from gossamer.values.outcome import TRANSIENT
from gossamer.values.visit import Record

SCHEMA = """
CREATE TABLE IF NOT EXISTS page (url TEXT PRIMARY KEY, host TEXT, tld TEXT, outcome TEXT, status INTEGER, mime TEXT,
    bytes INTEGER, digest TEXT, fetched REAL, links INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS growth (pages INTEGER PRIMARY KEY, known INTEGER);
"""

#: The URL space is looked at whenever the crawl has grown by so much.
STEP = 1.1

Pairs = Sequence[tuple[str, float]]


class StatisticsSheet(Sheet, frozen=True):
    """Where they go."""

    output: Annotated[str, setting("The database.", restart="it is open")] = "statistics.sqlite"


class Statistics(Consumer[StatisticsSheet]):
    """Keeps a row for each page, in the place of the tally."""

    records: In[Record]

    async def start(self) -> None:
        """Open the database; a resumed crawl goes on with it."""
        self._database = sqlite3.connect(self.sheet.output)
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;" + SCHEMA)
        (self._pages,) = self._database.execute("SELECT count(*) FROM page").fetchone()
        (self._known,) = self._database.execute("SELECT coalesce(max(known), 0) FROM growth").fetchone()
        self._next = self._pages * STEP

    async def stop(self) -> None:
        """Note how far the URL space was known in the end."""
        self._grow()
        self._database.commit()
        self._database.close()

    def consume_many(self, records: Sequence[Record]) -> None:
        """A row for each page; errands for robots.txt and tries that will be repeated are none."""
        rows = []
        for record in records:
            visit = record.visit
            if visit.is_robots or visit.response.outcome in TRANSIENT:
                continue
            response, host = visit.response, visit.task.host
            tld = "" if host.replace(".", "").isdigit() or ":" in host else host.rpartition(".")[2]
            row = (visit.url, host, tld, str(response.outcome), response.status, response.mime, len(response.body))
            rows.append((*row, visit.digest, response.started, len(visit.links)))
            self._pages += 1
            self._known += len(visit.new) + (visit.task.relation == "seed")
            if self._pages >= self._next:
                self._grow()
        with self._database:
            self._database.executemany("REPLACE INTO page VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def _grow(self) -> None:
        self._database.execute("REPLACE INTO growth VALUES (?, ?)", (self._pages, self._known))
        self._next = self._pages * STEP


def wiring() -> Wiring:
    """The shipped wiring, with this consumer at the end of the records."""
    plain = shipped("default")
    components = dict(plain.components)
    ports = components.pop("tally").ports
    components["statistics"] = ComponentPlan(use="statistics", ports={"records": ports["records"]})
    return msgspec.structs.replace(plain, description="Web statistics", components=components)


# -- what the figures say


class Found(msgspec.Struct):
    """One table: a share for each name, out of a total."""

    title: str
    pairs: Pairs

    def text(self) -> str:
        """The table, as shares."""
        total = sum(value for _, value in self.pairs) or 1
        rows = [f"{value:>12,.0f} {value / total:7.1%}  {name}" for name, value in self.pairs]
        return "\n".join([self.title, *rows])


def tables(database: sqlite3.Connection) -> list[Found]:
    """What one crawl says."""

    def counted(title: str, what: str, where: str = "1", count: str = "count(*)", most: int = 20) -> Found:
        query = f"SELECT {what}, {count} AS n FROM page WHERE {where} GROUP BY 1 ORDER BY n DESC, 1 LIMIT {most}"
        return Found(title, [(str(name or "none"), number) for name, number in database.execute(query)])

    sizes: dict[int, int] = {}
    for (size,) in database.execute("SELECT bytes FROM page WHERE outcome = 'ok'"):
        sizes[size.bit_length()] = sizes.get(size.bit_length(), 0) + 1
    powers = range(min(sizes, default=0), max(sizes, default=-1) + 1)
    return [
        counted("Status codes", "status", "status > 0"),
        counted("Failures", "outcome", "status = 0"),
        counted("Media types", "mime", "outcome = 'ok'"),
        Found("Sizes", [(f"< {1 << power:,} bytes", sizes.get(power, 0)) for power in powers]),
        counted("Servers by top-level domain", "tld", count="count(DISTINCT host)"),
    ]


def heaps(points: Sequence[tuple[float, float]]) -> float:
    """The exponent of the growth of known URLs with pages: least squares of the logarithms; 1 is linear."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(logs) < 2:
        return math.nan
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else math.nan


def changes(database: sqlite3.Connection, old: str) -> list[tuple[str, str]]:
    """What two crawls of the same pages say: names and figures."""
    database.execute("ATTACH ? AS old", (f"{Path(old).resolve().as_uri()}?mode=ro",))
    both = "FROM page JOIN old.page AS was USING (url) WHERE was.outcome = 'ok'"
    (seconds,) = database.execute(f"SELECT avg(page.fetched - was.fetched) {both}").fetchone()
    asked, same, gone = database.execute(
        f"""SELECT count(*), coalesce(sum(page.outcome = 'ok' AND page.digest = was.digest), 0),
            coalesce(sum(page.status IN (404, 410)), 0) {both}"""
    ).fetchone()
    (alive,) = database.execute(f"SELECT count(*) {both} AND page.outcome = 'ok'").fetchone()
    born = "SELECT count(*) FROM page WHERE outcome = 'ok' AND url NOT IN (SELECT url FROM old.page)"
    (new,) = database.execute(born).fetchone()
    days = (seconds or 0) / 86_400
    # Half a page more than there are, so that no rate is infinite (equation 8 of Cho and Garcia-Molina).
    per_day = math.log((alive + 0.5) / (same + 0.5)) / days if days > 0 else math.nan
    dying = math.log((asked + 0.5) / (asked - gone + 0.5)) / days if days > 0 else math.nan
    return [
        ("pages asked for again", f"{asked:,}"),
        ("days between", f"{days:.2f}"),
        ("unchanged", f"{same:,}"),
        ("changed", f"{alive - same:,}"),
        ("gone", f"{gone:,}"),
        ("new", f"{new:,}"),
        ("changes of a page a day", f"{per_day:.4f}"),
        ("mean lifetime in days", f"{1 / dying:.1f}" if dying > 0 else "not known: no page is gone"),
    ]


# -- plots


def bars(found: Found) -> str:
    """A bar chart as SVG."""
    most = max((value for _, value in found.pairs), default=1) or 1
    shapes = [f'<text x="10" y="22" font-weight="bold">{html.escape(found.title)}</text>']
    for number, (name, value) in enumerate(found.pairs):
        y = 40 + 20 * number
        shapes.append(f'<text x="200" y="{y + 11}" text-anchor="end">{html.escape(name[:28])}</text>')
        shapes.append(f'<rect x="210" y="{y}" width="{300 * value / most:.1f}" height="14" fill="#47a"/>')
        shapes.append(f'<text x="{215 + 300 * value / most:.1f}" y="{y + 11}">{value:,.0f}</text>')
    return _svg(600, 60 + 20 * len(found.pairs), shapes)


def curve(title: str, points: Sequence[tuple[float, float]]) -> str:
    """A curve as SVG, both axes logarithmic."""
    logs = [(math.log10(x), math.log10(y)) for x, y in points if x > 0 and y > 0] or [(0.0, 0.0)]
    right, top = max(x for x, _ in logs) or 1, max(y for _, y in logs) or 1
    line = " ".join(f"{40 + 500 * x / right:.1f},{330 - 280 * y / top:.1f}" for x, y in logs)
    return _svg(
        600,
        360,
        [
            f'<text x="10" y="22" font-weight="bold">{html.escape(title)}</text>',
            f'<polyline points="{line}" fill="none" stroke="#47a" stroke-width="2"/>',
            '<path d="M40 50V330H540" fill="none" stroke="#888"/>',
            f'<text x="45" y="60">{10**top:,.0f}</text>',
            f'<text x="540" y="348" text-anchor="end">{10**right:,.0f}</text>',
        ],
    )


def _svg(width: int, height: int, shapes: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
    return head + 'font-size="12"><rect width="100%" height="100%" fill="#fff"/>' + "".join(shapes) + "</svg>\n"


def report(new: str, old: str | None, plots: str | None) -> str:
    """Everything that is known, as text; plots into a folder."""
    database = sqlite3.connect(f"{Path(new).resolve().as_uri()}?mode=ro", uri=True)
    found = tables(database)
    points = [(float(x), float(y)) for x, y in database.execute("SELECT pages, known FROM growth ORDER BY pages")]
    pages, known = points[-1] if points else (0, 0)
    parts = [table.text() for table in found]
    parts.append(f"URL space\n{pages:,.0f} fetched, {known:,.0f} known; known grows as fetched^{heaps(points):.2f}")
    if old is not None:
        parts.append("\n".join(["Change", *(f"{value:>16}  {name}" for name, value in changes(database, old))]))
    database.close()
    if plots is not None:
        folder = Path(plots)
        folder.mkdir(exist_ok=True)
        for table in found:
            (folder / f"{table.title.lower().replace(' ', '-')}.svg").write_text(bars(table), encoding="utf-8")
        (folder / "growth.svg").write_text(curve("Known URLs by pages fetched", points), encoding="utf-8")
    return "\n\n".join(parts)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="web-statistics", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("wiring", help="print the wiring")
    verbs.add_parser("urls", help="print the URLs of a crawl's pages").add_argument("database")
    telling = verbs.add_parser("report", help="print what a crawl says, or two of the same pages")
    telling.add_argument("database")
    telling.add_argument("before", nargs="?")
    telling.add_argument("--plots", metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.verb == "wiring":
        print(to_toml(wiring()))
    elif arguments.verb == "urls":
        with sqlite3.connect(arguments.database) as database:
            for (url,) in database.execute("SELECT url FROM page WHERE outcome = 'ok'"):
                print(url)
    else:
        print(report(arguments.database, arguments.before, arguments.plots))


if __name__ == "__main__":
    main()
