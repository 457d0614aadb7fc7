"""`gossamer about`, the page for site owners, and `gossamer doctor`, what would hinder a crawl here.

The page says who crawls, how politely, and how to opt out. It is made of a crawl's own settings, so that it is true. Put it where
the crawl's contact leads.
"""

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gossamer.cli.helping import opened, option
from gossamer.cli.options import OptionsInGroups, crawl_options, read_options
from gossamer.cli.saying import say_json, tell_plain
from gossamer.engine.errors import refusing
from gossamer.engine.sheet import show_bytes
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.engine.graph import Graph
    from gossamer.frontier.politeness.rules import PolitenessSheet

#: Letters of the user agent and the contact that are shown: no name is longer.
_LONGEST = 500


def about_page(graph: "Graph", contact: str) -> str:
    """The page as HTML. `contact` is a URL or mail address for site owners; empty where none is known."""
    from gossamer.fetcher.request import HttpSheet
    from gossamer.frontier.politeness.rules import PolitenessSheet
    from gossamer.frontier.robots.provider import RobotsSheet

    sheets: dict[Any, Any] = {
        kind: node.sheet for node in graph.providers.values() for kind in type(node.sheet).__mro__
    }
    http, politeness, robots = (sheets.get(kind) for kind in (HttpSheet, PolitenessSheet, RobotsSheet))
    agent = (http.user_agent if http is not None else "")[:_LONGEST]
    token = robots.agent if robots is not None else agent.partition("/")[0]
    rows = [("Name in robots.txt", token), ("User-Agent", agent), ("Contact", contact[:_LONGEST] or "not given")]
    rows += _pace(politeness) if politeness is not None else []
    if http is not None:
        rows.append(("Largest body", show_bytes(http.max_body)))
        rows.append(("Cookies", "kept while the crawl runs" if http.cookies != "off" else "not kept"))
    if any(node.plan.use == "render" for node in graph.components.values()):
        from gossamer.browser.rendering import MOST_WANTS

        rows.append(("Requests for a page that a browser renders", f"{MOST_WANTS} at most, each after the wait"))
    table = "\n".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return _PAGE.format(
        token=escape(token),
        table=table,
        contact=_contact(contact[:_LONGEST]),
        obeys=_OBEYS if robots is not None else _DOES_NOT,
    )


def _pace(sheet: "PolitenessSheet") -> list[tuple[str, str]]:
    delay = (
        f"{sheet.factor:g} times the time that the server takes, between {_seconds(sheet.floor)} and {_seconds(sheet.cap)}"
        if sheet.delay == "auto"
        else _seconds(sheet.delay)
    )
    rows = [
        ("Wait between two requests to a host", delay),
        ("Requests to a host at once", str(sheet.per_host)),
        ("Requests to a registered domain at once", str(max(sheet.domain_live, sheet.per_host))),
    ]
    rows += [(f"Wait for {host}", one if isinstance(one, str) else _seconds(one)) for host, one in sheet.delays.items()]
    rows += [(f"Requests to {host} at once", str(count)) for host, count in sheet.lives.items()]
    if sheet.rate is not None:
        rows.append(("Pages a second in all", f"{sheet.rate:g}"))
    return rows


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def _contact(contact: str) -> str:
    if not contact:
        return "the person who runs it"
    is_page = contact.startswith(("http://", "https://"))
    link = contact if is_page or contact.startswith("mailto:") else f"mailto:{contact}"
    return f'<a href="{escape(link)}">{escape(contact.removeprefix("mailto:"))}</a>'


_OBEYS = (
    "<p>The crawler reads <code>robots.txt</code> (RFC 9309) before anything else of a site, and obeys it, "
    "<code>Crawl-delay</code> too. When a server answers 429 or 503, or slows down, "
    "the crawler waits longer.</p>"
)

_DOES_NOT = (
    "<p>The hosts of this crawl belong to the person who runs it, so it does not ask for <code>robots.txt</code>.</p>"
)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>About the crawler {token}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}}th{{text-align:left;padding-right:1em}}</style>
<h1>About the crawler {token}</h1>
<p>If you found <code>{token}</code> in the logs of your server, this page is for you. Questions and complaints reach {contact}.</p>
<table>
{table}
</table>
<h2>How it behaves</h2>
{obeys}
<h2>How to opt out</h2>
<p>Put this into the <code>robots.txt</code> of your site.
It holds from the next time that the crawler reads the file, within a day:</p>
<pre>User-agent: {token}
Disallow: /</pre>
<p>To slow it down instead: <code>Crawl-delay: 10</code> under the same <code>User-agent</code> line.
To keep single pages out of copies:
<code>&lt;meta name="robots" content="noarchive"&gt;</code>. If it is urgent, write to {contact}.</p>
</html>
"""


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
    Raises UsageError: the shell is not known, or the file cannot be written."""
    from click.shell_completion import get_completion_class

    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in PLACES else None
    if kind is None:
        raise UsageError(
            f"--install-completion supports {', '.join(PLACES)}; name one of them, not {name or 'nothing'!r}"
        )
    path = Path.home() / PLACES[name]
    with refusing(UsageError, f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(kind(commands, {}, "gossamer", VARIABLE).source(), encoding="utf-8")
    hint = "; add `fpath+=~/.zfunc` before `compinit` in ~/.zshrc" if name == "zsh" else ""
    return f"wrote {path}; start a new {name} to use it{hint}"


@click.command(cls=OptionsInGroups)
@click.argument("directory", metavar="[DIR]", required=False)
@crawl_options
@option("--config FILE", "Read options from a TOML file; the command line overrides it.")
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
    from gossamer.crawls.catalog import catalog
    from gossamer.crawls.compiling import compile_wiring
    from gossamer.crawls.directory import kept_wiring
    from gossamer.crawls.identity import contact_of
    from gossamer.engine.planning import plan

    wiring = compile_wiring([], options, kept_wiring(directory) if directory else None)
    graph = plan(wiring, catalog())
    kept = next((str(node.settings.get("contact", "")) for node in wiring.providers.values() if node.use == "warc"), "")
    page = about_page(graph, contact_of(options) or kept)
    with opened(output) as out:
        out.write(page)
    if output is not None:
        tell_plain(f"wrote {output}")
    return 0


# `gossamer doctor`: what would hinder a crawl, in one screen.

#: A name that is reserved for examples, and that every resolver of the public DNS knows.
KNOWN_HOST = "example.org"


@click.command()
@click.argument("directory", metavar="[DIR]", default="")
@option("--host", "Look up this name; if empty, none.", default=KNOWN_HOST, show_default=True)
@option("--json as_json", "Print one line of JSON for each finding.")
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
