"""`gossamer about`: the page for site owners, out of a crawl's settings."""

import sys
from pathlib import Path
from typing import Any

import click

from gossamer.cli.options import crawl_options, read_options
from gossamer.cli.telling import tell_plain
from gossamer.model.errors import UsageError


@click.command()
@click.argument("directory", metavar="[DIR]", required=False)
@crawl_options
@click.option("--config", metavar="FILE", help="Read options from a TOML file; the command line overrides it.")
def about(directory: str | None, config: str | None, **given: Any) -> int:
    """Write a page for site owners that says who crawls, how politely, and how to opt out.

    The page describes the crawl in DIR, or a crawl with these options. It goes to the file of -o, or to standard
    output. Publish it at the URL of --contact.

    \b
    gossamer about mycrawl -o about.html
    gossamer about --contact https://example.org/bot --delay 5s -o about.html
    """
    output = given.pop("output", None)
    options = read_options(given, config)
    from gossamer.assembly.catalog import catalog
    from gossamer.assembly.compiling import compile_wiring
    from gossamer.assembly.identity import contact_of
    from gossamer.assembly.kept import kept_wiring
    from gossamer.flow.planning import plan
    from gossamer.operations.about import about_page

    wiring = compile_wiring([], options, kept_wiring(directory) if directory else None)
    graph = plan(wiring, catalog())
    kept = next((str(node.settings.get("contact", "")) for node in wiring.providers.values() if node.use == "warc"), "")
    page = about_page(graph, contact_of(options) or kept)
    if output is None:
        sys.stdout.write(page)
        sys.stdout.flush()
        return 0
    try:
        fresh = Path(f"{output}.new")
        fresh.write_text(page, encoding="utf-8")
        fresh.replace(output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    tell_plain(f"wrote {output}")
    return 0
