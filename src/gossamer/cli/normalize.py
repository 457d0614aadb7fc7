"""`gossamer normalize`: the form in which a crawl would keep these URLs.

Place in the flow: the command line's door to :mod:`gossamer.model.url` and :mod:`gossamer.model.normal`, without a crawl.
"""

import click

from gossamer.cli.lines import given_urls, shown
from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.normal import STEPS, USUAL, Normaliser, chosen
from gossamer.model.url import canonical
from gossamer.stages.links.lists import parameters_of


@click.command(
    epilog=f"Steps: {', '.join(STEPS)}; usual: {', '.join(USUAL)}. Exit status: 0 all are URLs, 2 a line is no URL."
)
@click.argument("urls", metavar="[URL]...", nargs=-1)
@click.option("--base", metavar="URL", help="Resolve relative URLs against this one.")
@click.option(
    "--normalise",
    "--normalize",
    "wishes",
    multiple=True,
    metavar="STEP",
    help="Also take this step (sort-query), or leave it out (no-tracking), as in a crawl (repeatable).",
)
@click.option(
    "--parameters",
    default="",
    metavar="FILE",
    help="Leave out the session and tracking parameters that this file lists.",
)
def normalize(urls: tuple[str, ...], base: str | None, wishes: tuple[str, ...], parameters: str) -> int:
    """Show the canonical form of URLs: the form that a crawl fetches and compares.

    It prints a line for each URL: its canonical form, or `error:` and the reason why it has none. Without URLs, or with
    `-`, it reads them from standard input, one a line. docs/urls.md explains the steps.

    \b
    gossamer normalize 'HTTP://Example.org:80/a/../%7Ex?utm_source=y#top'
    gossamer normalize --base http://example.org/dir/ ../x < links.txt
    """
    try:
        normalise = Normaliser(chosen(wishes), parameters_of(parameters))
    except ValueError as error:
        raise UsageError(f"--normalise: {error}") from None
    if base is not None:
        try:
            base = canonical(base)
        except UnreadableUrl as error:
            raise UsageError(f"--base: {error}") from None
    status = 0
    for text in given_urls(urls):
        try:
            print(shown(normalise(canonical(text, base))))
        except UnreadableUrl as error:
            print(f"error: {shown(str(error))}")
            status = 2
    return status
