"""`gossamer render`: one page as a browser makes it of what the crawl would fetch.

Place in the flow: a crawl of one page in a folder that goes away, so that robots.txt, politeness, guard and limits are those of
`gossamer crawl`; :mod:`gossamer.query.archive` reads what came of it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gossamer.cli.options import options_named, read_options
from gossamer.cli.saying import say_bytes, say_json, shown, tell
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.query.database import Database

#: The options of a crawl that go with it.
OPTIONS = (
    *("contact", "user_agent", "header", "header_for", "auth", "proxy", "ca_file", "resolve", "allow_network"),
    *("delay", "max_page_size", "robots", "i_own_these_hosts", "browser", "render_post"),
)

_WANTS = """
    SELECT substr(relation, 8) AS kind, url, status, outcome, bytes, mime FROM pages
    WHERE starts_with(relation, 'render ') ORDER BY fetched_at
"""


@click.command()
@click.argument("url")
@click.option("--screenshot", metavar="FILE", help="Also write a picture of the page to this file (PNG).")
@click.option(
    "--wants", is_flag=True, help="Write the requests that the page makes instead, one line of JSON for each."
)
@options_named(OPTIONS)
def render(url: str, screenshot: str | None, wants: bool, **given: Any) -> int:
    """Render URL with Chromium, and write the page to standard output as its scripts have made it.

    The browser has no network: each request of the page is sent as a crawl sends it, with robots.txt, delays and the
    guard. `crawl --render auto` does the same for the pages of a crawl that need it.

    Exit status: 0 the page was rendered, 2 wrong usage, 4 it was not.
    """
    from gossamer.crawls.crawl import Crawl
    from gossamer.crawls.machine import coroutine_runner
    from gossamer.engine.files import PREFIX, scratch
    from gossamer.query.archive import ArchiveReader, archived_visit
    from gossamer.query.database import Database

    picture = None if screenshot is None else Path(screenshot)
    if picture is not None and not picture.parent.is_dir():
        raise UsageError(f"--screenshot {screenshot}: there is no folder {picture.parent}")
    with scratch(f"{PREFIX}render-") as folder:
        place = Path(folder) / "crawl"
        fixed = {
            "output": str(place),
            "render": "always",
            "max_pages": 1,
            "depth": 0,
            "screenshot": picture is not None,
        }
        options = read_options({**given, **fixed}, None)
        with coroutine_runner() as runner:
            runner.run(Crawl([url], options, report=_tell, tables=False).run())
        with Database(place) as tables:
            if wants:
                for line in _rows(tables, _WANTS):
                    say_json(line)
                return 0
            rows = _rows(tables, "SELECT * FROM pages WHERE render IS NOT NULL")
            if not rows or not rows[0]["dom_length"]:
                rows = rows or _rows(tables, "SELECT * FROM pages WHERE relation <> 'robots'")
                tell(f"{shown(url)} was not rendered: {_why(rows)}")
                return 4
        visit = archived_visit(ArchiveReader(place), rows[0])
        assert visit.rendered is not None
        if picture is not None:
            picture.write_bytes(visit.rendered.picture)
        say_bytes((visit.rendered.dom,))
        if rows[0]["render"] != "done":
            tell(f"the page was read before it had come to rest ({rows[0]['render']}; {rows[0]['wants']})")
    return 0


def _tell(line: str) -> None:
    tell(line)


def _rows(tables: "Database", question: str) -> list[dict[str, Any]]:
    found = tables.ask(question)
    return [dict(zip(found.columns, row, strict=True)) for row in found]


def _why(rows: list[dict[str, Any]]) -> str:
    """The reason why there is no rendered page."""
    if not rows:
        return "no server was asked for it"
    row = rows[0]
    if row["render"]:
        return str(row["render"])
    if row["outcome"] == "redirect":
        return "it redirects elsewhere; `gossamer fetch` shows where"
    return f"{row['outcome']} {row['status'] or ''}, {row['mime'] or 'no document'}; {row['error'] or ''}".rstrip("; ")
