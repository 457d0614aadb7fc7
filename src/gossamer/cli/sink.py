"""`gossamer sink`: databases of your own that rows of a crawl go to."""

from pathlib import Path

import click

#: The exit status where a mapping does not do: a configuration to mend.
REFUSED = 2


@click.group()
def sink() -> None:
    """Check the databases to which `gossamer crawl --sinks FILE` writes rows."""


@sink.command()
@click.argument("file", metavar="FILE")
@click.argument("directory", metavar="[DIR]", required=False)
def check(file: str, directory: str | None) -> int:
    """Try every mapping of FILE: connect, look for the columns, and put ten rows of the crawl in DIR, which are not kept.

    \b
    gossamer sink check sinks.toml mycrawl
    """
    from gossamer.operations.sinking import check_sinks
    from gossamer.query.places import crawl_directory
    from gossamer.query.printing import shown

    status = 0
    for verdict in check_sinks(Path(file), crawl_directory(directory) if directory else None):
        said = verdict.problem or (
            f"takes rows ({verdict.rows} tried, none kept)" if directory else "has these columns"
        )
        mapping = f"{verdict.source} -> {verdict.into}: " if verdict.source else ""
        print(shown(f"{verdict.sink}: {mapping}{said}"))
        status = REFUSED if verdict.problem else status
    return status
