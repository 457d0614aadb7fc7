"""The `gossamer` command: finds the command's own file, loads it alone, and turns errors into one line and an exit code."""

import errno
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from gossamer._version import __version__
from gossamer.cli.leaving import interruptible, own_process
from gossamer.cli.saying import guard_terminal
from gossamer.cli.telling import finish, print_anything, tell, unwritten
from gossamer.crawl.machine import load_without_collecting

#: Command -> (module, one line of help). Loaded only when called, so that the command starts at once.
COMMANDS = {
    "crawl": ("gossamer.cli.crawl", "Crawl from one or more seeds into a directory."),
    "resume": ("gossamer.cli.crawl", "Go on with a crawl that was stopped, reached a limit or was killed."),
    "run": ("gossamer.spiders.commands", "Crawl with a spider of your own."),
    "status": ("gossamer.cli.status", "Show how a crawl stands, while it runs and after."),
    "watch": ("gossamer.cli.watch", "Show the overview of a crawl on the terminal, again and again."),
    "dashboard": ("gossamer.cli.dashboard", "Show crawls in the browser, and let a person steer them."),
    "pause": ("gossamer.cli.steering", "Pause a running crawl."),
    "continue": ("gossamer.cli.steering", "Continue a paused crawl."),
    "stop": ("gossamer.cli.steering", "End a running crawl gracefully."),
    "checkpoint": ("gossamer.cli.steering", "Save the state of a crawl under a name, or go back to one."),
    "set": ("gossamer.cli.steering", "Change settings of a running crawl."),
    "rewire": ("gossamer.cli.steering", "Change the graph of a running crawl."),
    "block": ("gossamer.cli.steering", "Send no more requests to hosts or domains."),
    "exchange": ("gossamer.agents.commands", "Write the URLs that a crawl owes other agents into files."),
    "merge": ("gossamer.agents.commands", "Merge exchange files of other agents into a crawl."),
    "designations": (
        "gossamer.agents.commands",
        "Show which agent has which domain, or give a domain to another one.",
    ),
    "ask": ("gossamer.cli.steering", "Send a running crawl a request that an installed package defines."),
    "why": ("gossamer.cli.why", "Tell the story of one URL of a crawl."),
    "traps": ("gossamer.cli.why", "List URLs that were set aside as likely traps; confirm or release them."),
    "cat": ("gossamer.cli.why", "Write an archived document to standard output."),
    "query": ("gossamer.cli.query", "Ask the tables of a crawl in SQL."),
    "report": ("gossamer.cli.query", "Report on a crawl: broken links, hosts, errors, duplicates and more."),
    "log": ("gossamer.cli.status", "Show one log of a crawl and all its agents, also while it runs."),
    "changes": ("gossamer.recrawl.commands", "List the changes of a crawl's pages between visits."),
    "diff": ("gossamer.recrawl.commands", "Show how a page differs between two stored versions."),
    "index": ("gossamer.search.commands", "Make the documents of a crawl searchable."),
    "search": ("gossamer.search.commands", "Search the documents of a crawl for words and phrases."),
    "rank": ("gossamer.cli.query", "Rank the URLs and hosts of a crawl by the links that lead to them."),
    "sink": ("gossamer.sinks.commands", "Check the databases to which a crawl writes rows."),
    "sparql": ("gossamer.rdf.commands", "Ask the triples of a crawl in SPARQL."),
    "serve-sparql": ("gossamer.rdf.commands", "Serve the triples of a crawl by the SPARQL protocol."),
    "export": ("gossamer.cli.export", "Write archive, index or tables for other tools."),
    "verify": ("gossamer.cli.upkeep", "Compare the files of a crawl with the list in its ledger."),
    "delete": ("gossamer.cli.upkeep", "Delete everything of a URL, host or domain from a crawl."),
    "trim": ("gossamer.cli.upkeep", "Drop old versions of pages that a crawl visited many times."),
    "reprocess": ("gossamer.cli.upkeep", "Run processors over the stored archive, without a request."),
    "fetch": ("gossamer.cli.fetch", "Fetch one URL, and show outcome, timings and header fields."),
    "inspect": ("gossamer.cli.fetch", "Show what a crawl would see in documents, as JSON."),
    "rdf": ("gossamer.rdf.commands", "Write the triples of one page: RDFa, JSON-LD and microdata."),
    "shell": ("gossamer.spiders.commands", "Open a Python prompt with one document, to try selectors and processors."),
    "new": ("gossamer.cli.new", "Begin a spider, processor or filter of your own, with a test that passes."),
    "about": (
        "gossamer.cli.setup",
        "Write a page for site owners that says who crawls, how politely, and how to opt out.",
    ),
    "topology": ("gossamer.cli.topology", "Show components, connectors and providers of a wiring."),
    "robots": ("gossamer.cli.urls", "Show which URLs a robots.txt allows, and by which rule."),
    "normalize": ("gossamer.cli.urls", "Show the canonical form of URLs."),
    "check-filter": (
        "gossamer.cli.topology",
        "Show which URLs a filter expression lets pass, and which part of it decides.",
    ),
    "runtime": ("gossamer.mobile.commands", "Run mobile crawlers beside the data."),
    "simweb": ("gossamer.cli.simweb", "Serve a simulated web to test crawlers on, and audit them."),
    "demo": ("gossamer.cli.demo", "Crawl a simulated web for half a minute and report the results."),
    "bench": ("gossamer.cli.bench", "Measure this build on this machine."),
    "doctor": ("gossamer.cli.setup", "Check whether anything would hinder a crawl on this machine."),
    "dev": ("gossamer.cli.setup", "Run developers' chores; this works only in a checkout."),
}


def find_command(name: str) -> click.Command:
    """The command of a known name, out of its module: `normalize`, or `set_` where Python has the name for itself."""
    module = importlib.import_module(COMMANDS[name][0])
    function = name.replace("-", "_")
    command: click.Command = getattr(module, f"{function}_", None) or getattr(module, function)
    return command


class _Commands(click.Group):
    """Knows every command by name, loads one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return find_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from gossamer.engine.sheet import nearest

            raise click.UsageError(f"there is no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


def _install_completion(context: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is None:
        return
    from gossamer.cli.setup import install

    click.echo(install(commands, shell))
    context.exit()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="gossamer %(version)s")
@click.option(
    "--install-completion",
    metavar="SHELL",
    is_flag=False,
    flag_value="",
    expose_value=False,
    is_eager=True,
    callback=_install_completion,
    help="Let the shell complete commands and options: bash, zsh or fish; without a name, that of $SHELL.",
)
def commands() -> None:
    """Gossamer crawls the web: politely, exactly, and so that you can see into it.

    \b
    gossamer crawl https://example.org/ --contact you@example.org
    gossamer crawl --help
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit status. Without `arguments` the process is this command's alone."""
    if arguments is not None:
        return finish(_run(arguments))
    own_process()
    load_without_collecting()
    print_anything()
    guard_terminal()
    with interruptible():
        code = _run(None)
    return finish(code)


def _run(arguments: Sequence[str] | None) -> int:
    """Run a command, and turn every error into one line and an exit status."""
    given = list(arguments) if arguments is not None else None
    try:
        _check_text(sys.argv[1:] if given is None else given)
        result = commands.main(args=given, prog_name="gossamer", standalone_mode=False)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        where = (
            f"gossamer {error.ctx.info_name}" if error.ctx is not None and error.ctx.parent is not None else "gossamer"
        )
        return _refuse(f"{error.format_message()} (see {where} --help)", 2)
    except click.ClickException as error:
        return _refuse(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        return 3
    except Exception as error:
        code = getattr(error, "exit_code", None)
        if isinstance(code, int):
            return _refuse(str(error), code)
        if isinstance(error, OSError) and _is_of_output(error):
            return unwritten(error, 0)
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":  # DuckDB's own
            return _refuse("there is not enough memory for this; what was committed is kept, so try again with more", 4)
        raise
    return result if isinstance(result, int) else 0


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse what is no text: it could neither be asked for nor written down.

    Raises:
        click.UsageError: an argument holds bytes that the locale's encoding does not have.
    """
    for argument in arguments:
        if not argument.isascii() and any("\ud800" <= character <= "\udfff" for character in argument):
            encoding = sys.getfilesystemencoding()
            raise click.UsageError(f"{argument!a} is not text in {encoding}; use a UTF-8 locale, as LC_ALL=C.UTF-8")


def _is_of_output(error: OSError) -> bool:
    """Whether an error comes from writing to a stream: one of a file names the file, one of a socket has no place here."""
    return error.filename is None and error.errno in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO)


def _refuse(message: str, code: int) -> int:
    """One line for one finding, on standard error."""
    tell(message)
    return code
