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
    *("delay", "max_page_size", "robots", "i_own_these_hosts", "browser", "render_post", "profile"),
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


@click.command()
@click.argument("url")
@click.argument("file")
@options_named(("browser",))
def profile(url: str, file: str, **given: Any) -> int:
    """Open URL in a browser, in which you log in, and keep what it has stored by then in FILE.

    Close the window when you have logged in. FILE holds the cookies and the local storage of all sites that you have
    visited in it: it opens your account as your password does, and only you can read it. Give it to `crawl --render`
    or `render` as --profile FILE.

    Exit status: 0 FILE is written, 2 wrong usage, no screen or no browser, 4 nothing was stored.
    """
    import contextlib
    import os
    import sys

    import msgspec

    from gossamer.browser.chromium import program
    from gossamer.browser.devtools import CommandFailed
    from gossamer.browser.options import RenderOptions
    from gossamer.browser.profiles import NOBODY, logged_in
    from gossamer.crawls.machine import coroutine_runner
    from gossamer.crawls.options import part_of
    from gossamer.engine.files import replace_file
    from gossamer.values.errors import UnreadableUrl
    from gossamer.values.url import canonical

    place = Path(file).absolute()
    if not place.parent.is_dir() or place.is_dir():
        raise UsageError(f"{file} cannot be written: name a file in a folder that is there")
    page = ""
    with contextlib.suppress(UnreadableUrl):
        page = canonical(url)
    if not page.startswith(("http://", "https://")):
        raise UsageError(f"{shown(url)}: a browser logs in at an http or https URL")
    browser = program(part_of(read_options(given, None), RenderOptions).browser, shown=True)
    if sys.platform != "darwin" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise UsageError(
            "there is no screen here: run `gossamer profile` where you see a browser, and bring FILE along"
        )
    tell("Log in, and close the window of the browser.")
    try:
        with coroutine_runner() as runner:
            found = runner.run(logged_in(browser, page))
    except CommandFailed as error:
        why = "; root's browser runs as nobody, who may not use your screen" if os.geteuid() == 0 else ""
        raise UsageError(f"{error}{why}") from None
    if found == NOBODY:
        tell(f"the browser has stored nothing; {file} is not written")
        return 4
    replace_file(place, msgspec.json.encode(found), mode=0o600)
    tell(f"{file} has {len(found.cookies)} cookies, and the storage of {len(found.origins)} origins")
    return 0
