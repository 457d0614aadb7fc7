"""`gossamer reprocess`: run processors over the stored archive, without a request."""

import asyncio
from typing import TYPE_CHECKING

import click

from gossamer.cli.saying import say_json
from gossamer.cli.telling import tell
from gossamer.flow.quantities import show_count, show_seconds

if TYPE_CHECKING:
    from gossamer.spiders.running import SpiderHandlers


@click.command()
@click.argument("directory", metavar="DIR")
@click.option("--wiring", "wiring_name", metavar="FILE", help="Run the processors of this wiring, not the crawl's own.")
@click.option(
    "--processor",
    "processors",
    multiple=True,
    metavar="[MIME=]NAME",
    help="Run only this processor (repeatable), and replace only items of the kinds that it finds.",
)
@click.option(
    "--spider",
    "spider_file",
    metavar="FILE[:NAME]",
    help="Run the handlers of this file over the pages, as `gossamer run FILE` does.",
)
@click.option(
    "--rdf",
    is_flag=True,
    help="Also read RDFa, JSON-LD and microdata into the triples, as `gossamer crawl --rdf` does.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def reprocess(
    directory: str,
    wiring_name: str | None,
    processors: tuple[str, ...],
    spider_file: str | None,
    rdf: bool,
    as_json: bool,
) -> int:
    """Run processors over every document that the crawl in DIR archived, and replace the documents' rows in the tables.

    New rows replace the old ones of links and items, and the columns of pages that processing fills in (title,
    language, ...). This happens all at once when the run ends; until then, and after a kill, the tables are as they
    were. A crawl may run meanwhile. Requests of a spider's handlers become links in the tables; nothing is fetched.
    Triples are replaced if the crawl keeps them, or with --rdf; otherwise they stay as they are.
    """
    from gossamer.assembly.compiling import find_wiring
    from gossamer.assembly.tuning import loop_factory
    from gossamer.operations.reprocess import reprocess as prepare

    run = prepare(
        directory,
        wiring=find_wiring(wiring_name) if wiring_name else None,
        processors=processors,
        rdf=rdf,
        spider=None if spider_file is None else _handlers_of(spider_file),
        report=tell,
    )
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        done = runner.run(run.run())
    if as_json:
        say_json(done)
    else:
        rows = ", ".join(f"{count} {table}" for table, count in done.tables.items())
        print(f"processed {show_count(done.documents, 'document')} in {show_seconds(done.seconds)}: {rows}")
        if done.is_at_work:
            read = (
                f"documents fetched until {done.read_until} were read"
                if done.read_until
                else "there was nothing to read"
            )
            print(f"running:  the crawl is running; {read}, and the crawl processes later pages itself")
        if done.unreadable:
            print(
                f"trouble:  {show_count(done.unreadable, 'record')} could not be read; their rows were left unchanged"
            )
    return 4 if done.unreadable else 0


def _handlers_of(file: str) -> "type[SpiderHandlers]":
    from gossamer.spiders.loading import load, parted

    spider, _ = load(*parted(file))
    handlers: type[SpiderHandlers] = spider.at_work()
    return handlers
