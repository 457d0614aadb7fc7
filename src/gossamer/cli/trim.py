"""`gossamer trim DIR --keep-versions N`: keep the newest versions of each page."""

import time

import click

from gossamer.cli.saying import say_json
from gossamer.cli.telling import tell
from gossamer.flow.quantities import show_bytes, show_count


@click.command(epilog="Exit status: 0 it is done, 2 wrong usage, 5 the crawl runs, is damaged, or is being read.")
@click.argument("directory", metavar="DIR")
@click.option(
    "--keep-versions",
    "versions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep this many versions of each page; without this option, the command only finishes a trim that was killed.",
)
@click.option(
    "--accept-loss", is_flag=True, help="Go on without files that are lost or damaged, and print a line for each."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def trim(directory: str, versions: int | None, accept_loss: bool, as_json: bool) -> int:
    """Drop old versions of pages that the crawl in DIR visited many times.

    The newest N visits of each URL stay, and the newest N that found a document. A record also stays if a visit that
    stays refers to it. Archive files that lose records are rewritten; tables, index and databases that follow the crawl
    lose the same visits. The crawl must not run. If the command is killed, call it again.
    """
    from gossamer.operations.trimming import trim as trim_crawl
    from gossamer.query.places import crawl_directory

    done = trim_crawl(crawl_directory(directory), versions, time.time(), accept=accept_loss, remark=tell)
    if as_json:
        say_json(done)
    else:
        gone = ", ".join((show_count(done.visits, "visit"), show_count(done.records, "record"), show_bytes(done.bytes)))
        print(f"dropped: {gone}")
    return 0
