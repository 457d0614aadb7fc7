"""`gossamer dashboard [DIR...]`: crawls in the browser."""

from pathlib import Path

import click

from gossamer.model.errors import UsageError


@click.command()
@click.argument("directories", metavar="[DIR...]", nargs=-1)
@click.option(
    "--address", metavar="[HOST:]PORT", default="", help="Listen here; otherwise at a free port of 127.0.0.1."
)
@click.option("--certificate", metavar="FILE", default="", help="Speak TLS with this certificate (PEM).")
@click.option("--key", metavar="FILE", default="", help="The key of the certificate (PEM).")
@click.option(
    "--without-tls",
    is_flag=True,
    help="Let other machines in without TLS; anybody who can read the traffic then gets the token.",
)
def dashboard(directories: tuple[str, ...], address: str, certificate: str, key: str, without_tls: bool) -> int:
    """Show crawls in the browser, until Ctrl-C: how they stand, their problems, and the remedies.

    DIR is a crawl, or a folder with crawls; without any, the crawls in the current folder are shown. The crawls may run or rest,
    and do not notice. Each line that is printed is an address: the first opens everything, the second shows and changes nothing.
    """
    from gossamer.dashboard.listening import check_installed, read_address

    check_installed()
    listening = read_address(address, certificate, key, is_open=without_tls)
    places = [Path(name) for name in directories or (".",)]
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place} is not a directory; name a crawl, or a folder with crawls")
    from gossamer.dashboard.serving import serve

    serve(places, listening, _tell)
    return 0


def _tell(full: str, read: str) -> None:
    print(f"{full}\n{read}", flush=True)
