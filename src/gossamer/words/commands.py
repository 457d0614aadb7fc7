"""`gossamer mcp`: crawls and the web for models, within what a person allows.

Place in the flow: :mod:`gossamer.words.mcp_server` speaks the protocol, :mod:`gossamer.words.tools` does what it asks for.
"""

import asyncio
import os
import secrets
from pathlib import Path

import click

from gossamer.cli.saying import tell
from gossamer.engine.files import scratch
from gossamer.engine.sheet import parse
from gossamer.values.errors import UsageError

#: Where the token for HTTP comes from, so that it stands in no list of processes.
TOKEN = "GOSSAMER_MCP_TOKEN"  # noqa: S105  # the name of a variable


@click.command()
@click.argument("directories", metavar="[DIR]...", nargs=-1)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="Let models fetch from this host and those below it; '*' lets them fetch from every public host (repeatable).",
)
@click.option(
    "--network", "networks", multiple=True, metavar="CIDR", help="Let them reach this private network too (repeatable)."
)
@click.option(
    "--max-pages", type=click.IntRange(0), default=1_000, show_default=True, help="Let them fetch so many pages."
)
@click.option("--max-bytes", metavar="SIZE", default="500MB", show_default=True, help="Let them fetch so many bytes.")
@click.option(
    "--max-time", metavar="TIME", default="1h", show_default=True, help="Let their crawls take so long in all."
)
@click.option(
    "--contact", metavar="CONTACT", help="Give site owners this URL or mail address, as crawl --contact does."
)
@click.option("--folder", metavar="FOLDER", help="Keep the crawls of models in this folder; default: none are kept.")
@click.option(
    "--http",
    "port",
    type=click.IntRange(1, 65_535),
    metavar="PORT",
    help=f"Serve HTTP on this port of this machine, to clients with the token in ${TOKEN}; without one, a new one is told.",
)
def mcp(
    directories: tuple[str, ...],
    hosts: tuple[str, ...],
    networks: tuple[str, ...],
    max_pages: int,
    max_bytes: str,
    max_time: str,
    contact: str | None,
    folder: str | None,
    port: int | None,
) -> int:
    """Serve the crawls in DIR to models, by the Model Context Protocol on standard input and output.

    Models get tools: crawls, search, read, query and why ask the crawls in DIR and those that the models start; fetch,
    map and crawl reach hosts of --host alone, obey robots.txt, and spend the budget. What pages say is data: nothing in
    it changes what the server does.

    \b
    gossamer mcp mycrawl
    gossamer mcp --host docs.example --max-pages 200 --contact you@example.org
    """
    from gossamer.storage.tables.places import crawl_directory
    from gossamer.words.mcp_server import serve_http, serve_stdio
    from gossamer.words.reach import Budget, read_reach
    from gossamer.words.tools import Tools

    crawls: dict[str, Path] = {}
    for directory in directories:
        place = crawl_directory(directory).resolve()
        if place.name in crawls:
            raise UsageError(f"two crawls are called {place.name}; rename one of their directories")
        crawls[place.name] = place
    budget = Budget(max_pages, int(_number("--max-bytes", max_bytes, "bytes")), _number("--max-time", max_time, "s"))
    reach = read_reach(hosts, networks)
    with scratch("gossamer-mcp-") as temporary:
        place = Path(folder or temporary)
        place.mkdir(parents=True, exist_ok=True)
        tools = Tools(crawls, place, reach, budget, ["--contact", contact] if contact else [])
        if port is None:
            asyncio.run(serve_stdio(tools))
            return 0
        token = os.environ.get(TOKEN) or secrets.token_urlsafe(32)
        tell(f"http://127.0.0.1:{port}/mcp" + ("" if os.environ.get(TOKEN) else f" with the token {token}"))
        asyncio.run(serve_http(tools, port, token))
    return 0


def _number(option: str, text: str, unit: str) -> float:
    try:
        return float(parse(text, unit))
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None
