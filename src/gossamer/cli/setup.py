"""`gossamer about`: the page for site owners, out of a crawl's settings."""

import os
import sys
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from gossamer.cli.options import crawl_options, read_options
from gossamer.cli.saying import say_json
from gossamer.cli.telling import tell_plain
from gossamer.values.errors import UsageError

# `gossamer --install-completion`: puts a completion script where the user's shell looks for one.

#: Shells that are known, and where each looks for completions of a user, below the home directory.
PLACES = {
    "bash": ".local/share/bash-completion/completions/gossamer",
    "zsh": ".zfunc/_gossamer",
    "fish": ".config/fish/completions/gossamer.fish",
}

#: The variable by which the script asks the program for completions (click's convention).
VARIABLE = "_GOSSAMER_COMPLETE"


def install(commands: click.Command, shell: str) -> str:
    """Write the script for a shell, or for that of $SHELL; returns what to tell the user.

    Raises:
        UsageError: the shell is not known, or the file cannot be written.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in PLACES else None
    if kind is None:
        raise UsageError(
            f"--install-completion supports {', '.join(PLACES)}; name one of them, not {name or 'nothing'!r}"
        )
    path = Path.home() / PLACES[name]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(kind(commands, {}, "gossamer", VARIABLE).source(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    hint = "; add `fpath+=~/.zfunc` before `compinit` in ~/.zshrc" if name == "zsh" else ""
    return f"wrote {path}; start a new {name} to use it{hint}"


@click.command()
@click.argument("directory", metavar="[DIR]", required=False)
@crawl_options
@click.option("--config", metavar="FILE", help="Read options from a TOML file; the command line overrides it.")
def about(directory: str | None, config: str | None, **given: Any) -> int:
    """Write a page for site owners that says who crawls, how politely, and how to opt out.

    The page describes the crawl in DIR, or a crawl with these options. It goes to the file of -o, or to standard
    output. Publish it at the URL of --contact.

    \b
    gossamer about mycrawl -o about.html
    gossamer about --contact https://example.org/bot --delay 5s -o about.html
    """
    output = given.pop("output", None)
    options = read_options(given, config)
    from gossamer.analysis.about import about_page
    from gossamer.crawls.catalog import catalog
    from gossamer.crawls.compiling import compile_wiring
    from gossamer.crawls.directory import kept_wiring
    from gossamer.crawls.identity import contact_of
    from gossamer.engine.planning import plan

    wiring = compile_wiring([], options, kept_wiring(directory) if directory else None)
    graph = plan(wiring, catalog())
    kept = next((str(node.settings.get("contact", "")) for node in wiring.providers.values() if node.use == "warc"), "")
    page = about_page(graph, contact_of(options) or kept)
    if output is None:
        sys.stdout.write(page)
        sys.stdout.flush()
        return 0
    try:
        fresh = Path(f"{output}.new")
        fresh.write_text(page, encoding="utf-8")
        fresh.replace(output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    tell_plain(f"wrote {output}")
    return 0


# `gossamer doctor`: what would hinder a crawl, in one screen.

#: A name that is reserved for examples, and that every resolver of the public DNS knows.
KNOWN_HOST = "example.org"


@click.command()
@click.argument("directory", metavar="[DIR]", default="")
@click.option("--host", default=KNOWN_HOST, show_default=True, help="Look up this name; if empty, none.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each finding.")
def doctor(directory: str, host: str, as_json: bool) -> int:
    """Check whether anything would hinder a crawl on this machine, or going on with the crawl in DIR.

    It checks versions, limits, memory, disk, names, identity and the crawl's ledger. It changes nothing, and sends only
    one DNS question.

    Exit status: 0 nothing hinders a crawl, 2 something does.
    """
    from gossamer.analysis.doctor import examine

    findings = examine(directory, host)
    for finding in findings:
        if as_json:
            say_json(finding)
        else:
            advice = f"; {finding.advice}" if finding.advice else ""
            click.echo(f"{finding.verdict:<5}{finding.about:<11}{finding.text}{advice}")
    return 2 if any(finding.verdict == "bad" for finding in findings) else 0


# `gossamer dev`: exists only in a checkout, where the launcher `./gossamer` handles it before this is reached.


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def dev(arguments: tuple[str, ...]) -> None:
    """Run developers' chores; this works only in a checkout."""
    raise click.UsageError("`dev` works in a checkout of the source only: run ./gossamer dev there")
