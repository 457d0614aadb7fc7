"""`gossamer run`: crawl with the spider of a file."""

from typing import Any

import click
import msgspec

from gossamer.cli.crawl import EPILOG, configured, run_job, told
from gossamer.cli.leaving import Leaving
from gossamer.cli.options import config_seeds, crawl_options, read_options, read_seed_files, read_sets
from gossamer.cli.saying import leave_terminal
from gossamer.cli.telling import tell


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE[:NAME]")
@click.argument("seed", nargs=-1)
@crawl_options
@click.option(
    "--seeds",
    "seed_files",
    multiple=True,
    metavar="FILE",
    help="Read seeds from a file, one a line; - is standard input.",
)
@configured
@click.option("--wiring", "wiring", metavar="FILE", help="Use this wiring; see gossamer topology --format toml.")
@told
def run(
    file: str,
    seed: tuple[str, ...],
    seed_files: tuple[str, ...],
    config: str | None,
    sets: tuple[str, ...],
    wiring: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Crawl with the spider that FILE defines; NAME is its variable, if FILE has several spiders.

    Options given here win over those of the file. SEEDs replace the spider's own. With --resume, go on with the crawl
    that the directory holds; it runs the handlers that FILE has now.

    \b
    gossamer run spider.py -o mine --items books.csv
    gossamer run spider.py -o mine --resume
    """
    leave_terminal()
    with Leaving() as leaving:
        from gossamer.spiders.loading import load, parted

        spider, own = load(*parted(file))
        chosen = {**spider.chosen, **own}
        seeds = chosen.pop("seeds", spider.seeds)
        plan = wiring or chosen.pop("wiring", "")
        chosen.pop("wiring", None)
        if given["resume"]:
            chosen.pop("items", None)  # the crawl has its item files
        options = read_options(given, config, chosen)
        if more := [*seed, *config_seeds(config), *read_seed_files(seed_files)]:
            if options.resume:
                raise click.UsageError("a resumed crawl has its seeds already; leave them out")
            seeds = more
        every = msgspec.structs.asdict(options) | ({"wiring": plan} if plan else {})
        job = spider.job(seeds, every, settings=read_sets(sets), report=tell)
        return run_job(job, leaving, as_json=as_json, quiet=quiet, verbose=verbose)
