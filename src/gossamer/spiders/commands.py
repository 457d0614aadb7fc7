"""Commands for authors of spiders: `gossamer run` and `gossamer shell`."""

import code
import importlib.util
import sys
from collections.abc import Callable, Iterable
from typing import Any

import click
import msgspec

from gossamer.cli.crawl import EPILOG, Telling, begun, run_job, told
from gossamer.cli.fetch import OPTIONS, fetched, read
from gossamer.cli.helping import option
from gossamer.cli.options import OptionsInGroups, options_named, read_given, read_options, read_seed_files, read_sets
from gossamer.cli.saying import Leaving, leave_terminal, shown, tell


@click.command(cls=OptionsInGroups, epilog=EPILOG)
@click.argument("file", metavar="FILE[:NAME]")
@click.argument("seed", nargs=-1)
@begun
@told
def run(
    file: str,
    seed: tuple[str, ...],
    seed_files: tuple[str, ...],
    config: str | None,
    sets: tuple[str, ...],
    wiring_name: str | None,
    telling: Telling,
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
        plan = wiring_name or chosen.pop("wiring", "")
        chosen.pop("wiring", None)
        if given["resume"]:
            chosen.pop("items", None)  # the crawl has its item files
        options, listed = read_given(given, config, chosen)
        if more := [*seed, *listed, *read_seed_files(seed_files)]:
            if options.resume:
                raise click.UsageError("a resumed crawl has its seeds already; leave them out")
            seeds = more
        every = msgspec.structs.asdict(options) | ({"wiring": plan} if plan else {})
        job = spider.job(seeds, every, settings=read_sets(sets), report=tell)
        return run_job(job, leaving, telling)


@click.command()
@click.argument("source", metavar="URL|FILE")
@option("--content-type TYPE", "Treat a file as this media type, as if a server had said so.", default="")
@options_named(OPTIONS)
def shell(source: str, content_type: str, **given: Any) -> int:
    """Open a Python prompt with one document, to try selectors and processors on it.

    The prompt offers `document` (as a processor gets it), `css(SELECTOR)` (its nodes), `run(PROCESSOR)` (the results of
    a processor), `response` (status and header fields), `url`, `Item` and `Found`. Without a terminal, Python is read
    from standard input.

    Exit status: 0 all went well, 2 wrong usage, 4 the URL gave no answer.
    """
    if "://" in source:
        import asyncio

        url, response = asyncio.run(fetched(source, read_options(given, None)))
        if not (response.headers or response.response_head):
            tell(f"{url}: {response.outcome}: {response.error}")
            return 4
    else:
        url, response = read(source, None, content_type)
    leave_terminal()
    from gossamer.documents.document import Document
    from gossamer.values.media_type import sniff_media_type
    from gossamer.values.task import Task
    from gossamer.values.url import host_of
    from gossamer.values.visit import Found, Item, Visit

    mime = sniff_media_type(response.content, response.content_type)
    document = Document(Visit(task=Task(url, host_of(url)), response=response, mime=mime))

    def run(processor: Callable[[Document], Iterable[Any] | None]) -> list[Any]:
        return list(processor(document) or ())

    names: dict[str, Any] = {"document": document, "css": document.css, "run": run, "response": response, "url": url}
    names |= {"Item": Item, "Found": Found}
    status = response.status or "a file"
    banner = f"{shown(url)}: {status}, {document.mime}. You can use document, css, run, response and url."
    if not sys.stdin.isatty():
        # No prompt between the answers: a program reads them.
        exec_lines(names, sys.stdin.read())
    elif importlib.util.find_spec("IPython") is not None:
        ipython: Any = importlib.import_module("IPython")
        ipython.embed(user_ns=names, banner1=banner, colors="neutral")
    else:
        code.interact(banner=banner, local=names, exitmsg="")
    return 0


def exec_lines(names: dict[str, Any], text: str) -> None:
    """Do what a text says as a prompt does: values are printed, an error is told, and the next statement is done."""
    console = code.InteractiveInterpreter(names)
    waiting: list[str] = []
    for line in [*text.splitlines(), ""]:
        waiting.append(line)
        if not console.runsource("\n".join(waiting), "<standard input>"):
            waiting = []
