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
    "diversity": "how evenly hosts come out of the task queues, plain and by pages",
    "seen": "which URLs are new: in memory, in a trie, in the ledger, in bulk by the sieve; ten minutes at 100 million",
}


@click.command()
@click.argument("name", required=False)
@click.option("--site", "sites", multiple=True, metavar="DIR", help="peers: serve and crawl this folder (repeatable).")
@click.option(
    "--repeats", type=click.IntRange(1, 20), default=3, show_default=True, help="peers: runs of each crawler."
)
@click.option("--urls", type=click.IntRange(1), multiple=True, help="seen: this many URLs (repeatable).")
@click.option(
    "--set", "sets", multiple=True, metavar="NAME", help="seen: only memory, trie, ledger or sieve (repeatable)."
)
@click.option("--json", "json_file", metavar="FILE", help="Also write the figures as JSON.")
def bench(
    name: str | None,
    sites: tuple[str, ...],
    repeats: int,
    urls: tuple[int, ...],
    sets: tuple[str, ...],
    json_file: str | None,
) -> None:
    """Run benchmark NAME and print its tables, with machine and versions. Without NAME: list them.

    \b
    gossamer bench flow
    gossamer bench peers --site /usr/share/doc/python3.11/html
    gossamer bench seen --set sieve --urls 100000000
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
    elif name == "seen":
        unknown = [one for one in sets if one not in module.SETS]
        if unknown:
            raise click.UsageError(f"--set {unknown[0]}{nearest(unknown[0], module.SETS)}")
        report = module.run(urls or module.SIZES, sets)
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
