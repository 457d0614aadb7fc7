"""`gossamer topology`: the graph of a wiring, or of the crawl that some options make."""

from typing import Any

import click
import msgspec

from gossamer.cli.options import crawl_options, read_options, read_seed_files, read_sets


@click.command()
@click.argument("names", metavar="[WIRING] [SEED]...", nargs=-1)
@click.option("--seeds", "seed_files", multiple=True, metavar="FILE", help="Read seeds from a file, one a line.")
@crawl_options
@click.option("--config", metavar="FILE", help="Read options from a TOML file; the command line overrides it.")
@click.option(
    "--set", "sets", multiple=True, metavar="UNIT.SETTING=VALUE", help="Set any setting of any unit (repeatable)."
)
@click.option(
    "--format", "form", type=click.Choice(["text", "toml", "dot", "mermaid", "json"]), default="text", show_default=True
)
def topology(
    names: tuple[str, ...],
    seed_files: tuple[str, ...],
    config: str | None,
    sets: tuple[str, ...],
    form: str,
    **given: Any,
) -> None:
    """Show components, connectors and providers of WIRING (a file, or the name of a shipped one; default: default).

    Crawl options fill the wiring in, so that --format toml prints a whole crawl that you can edit and run. Passwords
    are not printed; give their options again when you run it.

    \b
    gossamer topology http://localhost:8000/ --depth 3 --format toml > my.toml
    gossamer crawl --wiring my.toml
    """
    # What follows imports every part that the wiring names; help does not.
    from gossamer.assembly.catalog import catalog
    from gossamer.assembly.compiling import find_wiring
    from gossamer.assembly.crawlers import compile_with_crawlers
    from gossamer.assembly.given_seeds import read_seeds
    from gossamer.flow import render
    from gossamer.flow.planning import plan
    from gossamer.flow.wiring import to_toml

    seeds = read_seeds([*(name for name in names if "://" in name), *read_seed_files(seed_files)])
    named = [name for name in names if "://" not in name]
    if len(named) > 1:
        raise click.UsageError(f"name one wiring, not {len(named)}: {', '.join(named)}")
    base = find_wiring(named[0]) if named else None
    wiring = compile_with_crawlers(seeds, read_options(given, config), base, read_sets(sets))
    graph = plan(wiring, catalog())
    if form == "toml":
        print(to_toml(render.without_secrets(wiring, graph)), end="")
    elif form == "json":
        print(msgspec.json.format(msgspec.json.encode(render.to_json(graph))).decode())
    else:
        print({"text": render.to_text, "dot": render.to_dot, "mermaid": render.to_mermaid}[form](graph))
