"""`gossamer bench`: run a benchmark by name, print its tables, keep its figures."""

import importlib
from pathlib import Path

import click

from gossamer.flow.sheet import nearest

#: Benchmark -> what it measures.
BENCHES = {
    "flow": "the machine room: provider calls, connectors, filters, remote links",
    "politeness": "whose turn it is and whether it may go: gates and schedule, by the request",
    "peers": "a crawl beside Scrapy, same site and links in one run (needs nginx, and --site DIR)",
    "ledger": "the durable heart: queues, seen set, commits, opening again; takes minutes",
}


@click.command()
@click.argument("name", required=False)
@click.option("--site", "sites", multiple=True, metavar="DIR", help="peers: serve and crawl this folder (repeatable).")
@click.option(
    "--repeats", type=click.IntRange(1, 20), default=3, show_default=True, help="peers: runs of each crawler."
)
@click.option("--json", "json_file", metavar="FILE", help="Also write the figures as JSON.")
def bench(name: str | None, sites: tuple[str, ...], repeats: int, json_file: str | None) -> None:
    """Run benchmark NAME and print its tables, with machine and versions. Without NAME: list them.

    \b
    gossamer bench flow
    gossamer bench peers --site /usr/share/doc/python3.11/html
    """
    if name is None:
        for known, text in BENCHES.items():
            print(f"{known:<10} {text}")
        return
    if name not in BENCHES:
        raise click.UsageError(f"no benchmark {name!r}{nearest(name, BENCHES)}")
    module = importlib.import_module(f"gossamer.bench.{name}")
    if name == "peers":
        report = module.run([_folder(site) for site in sites], repeats)
    else:
        report = module.run()
    print(report.text())
    if json_file is not None:
        Path(json_file).write_bytes(report.json())


def _folder(name: str) -> Path:
    path = Path(name)
    if not (path / "index.html").is_file():
        raise click.UsageError(f"--site {name}: not a folder with an index.html to crawl from")
    return path.resolve()
