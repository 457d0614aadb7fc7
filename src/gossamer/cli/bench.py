"""`gossamer bench`: run a benchmark by name, print its tables, keep its figures."""

import importlib
from pathlib import Path

import click

from gossamer.flow.sheet import nearest

#: Benchmark -> what it measures.
BENCHES = {
    "flow": "the machine room: provider calls, connectors, filters, remote links",
    "ledger": "the durable heart: queues, seen set, commits, opening again; takes minutes",
}


@click.command()
@click.argument("name", required=False)
@click.option("--json", "json_file", metavar="FILE", help="Also write the figures as JSON.")
def bench(name: str | None, json_file: str | None) -> None:
    """Run benchmark NAME and print its tables, with machine and versions. Without NAME: list them."""
    if name is None:
        for known, text in BENCHES.items():
            print(f"{known:<10} {text}")
        return
    if name not in BENCHES:
        raise click.UsageError(f"no benchmark {name!r}{nearest(name, BENCHES)}")
    report = importlib.import_module(f"gossamer.bench.{name}").run()
    print(report.text())
    if json_file is not None:
        Path(json_file).write_bytes(report.json())
