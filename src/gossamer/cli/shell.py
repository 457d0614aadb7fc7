"""`gossamer shell`: a Python prompt with one document, as a processor gets it; IPython where that is installed."""

import asyncio
import code
import importlib.util
import sys
from collections.abc import Callable, Iterable
from typing import Any

import click

from gossamer.cli.documents import fetched, read
from gossamer.cli.fetch import OPTIONS
from gossamer.cli.lines import shown
from gossamer.cli.options import options_named, read_options
from gossamer.cli.saying import leave_terminal
from gossamer.cli.telling import tell
from gossamer.model.mime import sniff
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Found, Item, Response, Visit
from gossamer.reading.document import Document


@click.command()
@click.argument("source", metavar="URL|FILE")
@click.option(
    "--content-type", metavar="TYPE", default="", help="Treat a file as this media type, as if a server had said so."
)
@options_named(OPTIONS)
def shell(source: str, content_type: str, **given: Any) -> int:
    """Open a Python prompt with one document, to try selectors and processors on it.

    The prompt offers `document` (as a processor gets it), `css(SELECTOR)` (its nodes), `run(PROCESSOR)` (the results of
    a processor), `response` (status and header fields), `url`, `Item` and `Found`. Without a terminal, Python is read
    from standard input.

    Exit status: 0 all went well, 2 wrong usage, 4 the URL gave no answer.
    """
    if "://" in source:
        url, response = asyncio.run(fetched(source, read_options(given, None)))
        if not (response.headers or response.response_head):
            tell(f"{url}: {response.outcome}: {response.error}")
            return 4
    else:
        url, response = read(source, None, content_type)
    leave_terminal()
    document = _document(url, response)
    status = response.status or "a file"
    _open(
        _names(document),
        f"{shown(url)}: {status}, {document.mime}. You can use document, css, run, response and url.",
    )
    return 0


def _document(url: str, response: Response) -> Document:
    mime = sniff(response.content, response.content_type)
    return Document(Visit(task=Task(url, host_of(url)), response=response, mime=mime))


def _names(document: Document) -> dict[str, Any]:
    """What the prompt knows."""

    def run(processor: Callable[[Document], Iterable[Any] | None]) -> list[Any]:
        """What a processor yields of the document."""
        return list(processor(document) or ())

    return {
        "document": document,
        "css": document.css,
        "run": run,
        "response": document.response,
        "url": document.url,
        "Item": Item,
        "Found": Found,
    }


def _open(names: dict[str, Any], banner: str) -> None:
    if not sys.stdin.isatty():
        # No prompt between the answers: what reads them is a program.
        exec_lines(names, sys.stdin.read())
    elif importlib.util.find_spec("IPython") is not None:
        ipython: Any = importlib.import_module("IPython")
        ipython.embed(user_ns=names, banner1=banner, colors="neutral")
    else:
        code.interact(banner=banner, local=names, exitmsg="")


def exec_lines(names: dict[str, Any], text: str) -> None:
    """Do what a text says as a prompt does: values are printed, an error is told, and the next statement is done."""
    console = code.InteractiveInterpreter(names)
    waiting: list[str] = []
    for line in [*text.splitlines(), ""]:
        waiting.append(line)
        if not console.runsource("\n".join(waiting), "<standard input>"):
            waiting = []
