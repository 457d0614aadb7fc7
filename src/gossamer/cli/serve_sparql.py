"""`gossamer serve-sparql`: the SPARQL protocol over the triples of a crawl, for programs and browsers on this machine."""

import signal
from types import FrameType

import click

from gossamer.cli.sparql import quantity
from gossamer.cli.telling import tell_plain


@click.command(name="serve-sparql")
@click.argument("directory", metavar="DIR")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Listen at this port; default: a free one.")
@click.option("--timeout", metavar="TIME", default="60s", show_default=True, help="Stop a query after this long.")
@click.option(
    "--memory", metavar="SIZE", default="1GB", show_default=True, help="Let a query use at most this much memory."
)
def serve_sparql(directory: str, port: int, timeout: str, memory: str) -> int:
    """Serve the triples of the crawl in DIR by the SPARQL 1.1 protocol, also while it runs, until it is stopped.

    It listens only on this machine, and changes nothing. It prints its address; the token in the address is new each
    time, and anybody who knows it can ask. In a browser the address shows a form.
    """
    from gossamer.query.derived import check_triples
    from gossamer.query.places import crawl_directory
    from gossamer.query.triples.asking import QuestionLimits
    from gossamer.query.triples.serving import SparqlServer

    place = crawl_directory(directory)
    check_triples(place)
    limits = QuestionLimits(
        seconds=quantity("--timeout", timeout, "s"), memory=int(quantity("--memory", memory, "bytes"))
    )
    with SparqlServer(place, port, limits) as server:
        print(server.url, flush=True)
        signal.signal(signal.SIGTERM, _stop)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            tell_plain("stopped")
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
