"""The `gossamer` command: finds the command's own file, loads it alone, and turns errors into one line and an exit code."""

import errno
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from gossamer._version import __version__
from gossamer.cli.helping import ASKED, EVERYTHING, CalledHelp, Entry, HelpGroup, HelpInPortions, write_groups
from gossamer.cli.saying import finish, guard_terminal, interruptible, own_process, print_anything, tell, unwritten
from gossamer.engine.subjects import Command, found_at, subjects

#: Heading of `gossamer --help` -> command -> where it is below this package, and one line of help. It is loaded only when called,
#: so that the command starts at once.
_CORE = {
    "Crawl": {
        "crawl": ("crawl:crawl", "Crawl from one or more seeds into a directory."),
        "resume": ("crawl:resume", "Go on with a crawl that was stopped, reached a limit or was killed."),
    },
    "Watch and steer": {
        "status": ("status:status", "Show how a crawl stands, while it runs and after."),
        "watch": ("status:watch", "Show the overview of a crawl on the terminal, again and again."),
        "dashboard": ("progress:dashboard", "Show crawls in the browser, and let a person steer them."),
        "pause": ("steering:pause", "Pause a running crawl."),
        "continue": ("steering:continue_", "Let a paused crawl go on; `resume` is for one that has ended."),
        "stop": ("steering:stop", "End a running crawl gracefully."),
        "checkpoint": ("steering:checkpoint", "Save the state of a crawl under a name, or go back to one."),
        "set": ("steering:set_", "Change settings of a running crawl."),
        "rewire": ("steering:rewire", "Change the graph of a running crawl."),
        "block": ("steering:block", "Send no more requests to hosts or domains."),
        "ask": ("steering:ask", "Send a running crawl a request that an installed package defines."),
        "traps": ("steering:traps", "List URLs that were set aside as likely traps; confirm or release them."),
        "log": ("status:log", "Show one log of a crawl and all its agents, also while it runs."),
    },
    "Ask a crawl": {
        "why": ("query:why", "Tell the story of one URL of a crawl."),
        "cat": ("query:cat", "Write an archived document to standard output."),
        "query": ("query:query", "Ask the tables of a crawl in SQL."),
        "report": ("query:report", "Report on a crawl: broken links, hosts, errors, duplicates and more."),
        "rank": ("query:rank", "Rank the URLs and hosts of a crawl by the links that lead to them."),
    },
    "Take out": {
        "export": ("export:export", "Write archive, index or tables for other tools."),
    },
    "Mend": {
        "verify": ("upkeep:verify", "Compare the files of a crawl with the list in its ledger."),
        "delete": ("upkeep:delete", "Delete everything of a URL, host or domain from a crawl."),
        "trim": ("upkeep:trim", "Drop old versions of pages that a crawl visited many times."),
        "reprocess": ("upkeep:reprocess", "Run processors over the stored archive, without a request."),
    },
    "Try": {
        "fetch": ("fetch:fetch", "Fetch one URL, and show outcome, timings and header fields."),
        "inspect": ("fetch:inspect", "Show what a crawl would see in documents, as JSON."),
        "robots": ("urls:robots", "Show which URLs a robots.txt allows, and by which rule."),
        "normalize": ("urls:normalize", "Show the canonical form of URLs."),
        "check-filter": (
            "urls:check_filter",
            "Show which URLs a filter expression lets pass, and which part of it decides.",
        ),
        "topology": ("new:topology", "Show components, connectors and providers of a wiring."),
        "doctor": ("setup:doctor", "Check whether anything would hinder a crawl on this machine."),
        "demo": ("demo:demo", "Crawl a simulated web for half a minute and report the results."),
        "simweb": ("simweb:simweb", "Serve a simulated web to test crawlers on, and audit them."),
        "bench": ("demo:bench", "Measure this build on this machine."),
    },
    "Make": {
        "new": ("new:new", "Begin a spider, processor or filter of your own, with a test that passes."),
        "about": (
            "setup:about",
            "Write a page for site owners that says who crawls, how politely, and how to opt out.",
        ),
        "dev": ("setup:dev", "Run developers' chores; this works only in a checkout."),
    },
}

COMMANDS = {
    name: Command(f"gossamer.cli.{place}", text, group)
    for group, commands_ in _CORE.items()
    for name, (place, text) in commands_.items()
}

#: The headings of `gossamer --help` in their order, each with an example.
GROUPS = {
    "Crawl": "gossamer crawl https://example.org/ --contact you@example.org -o mine",
    "Watch and steer": "gossamer watch mine",
    "Ask a crawl": "gossamer report mine broken",
    "Take out": "gossamer export mine --to wacz",
    "Mend": "gossamer verify mine --deep",
    "Try": "gossamer fetch https://example.org/ --contact you@example.org",
    "Many machines": "gossamer runtime check --serve https://example.org=/var/www/html",
    "Make": "gossamer new spider shop",
}

#: Commands that `gossamer --help` leaves to the help of their groups.
RARE = frozenset(
    ("checkpoint", "rewire", "ask", "log", "rank", "trim", "reprocess", "normalize", "check-filter", "topology", "simweb", "bench",
     "about", "dev", "diff", "shell", "rdf", "serve-sparql", "index", "sink", "exchange", "merge", "designations")
)  # fmt: skip


def all_commands() -> dict[str, Command]:
    """Every command: those of the core, of subjects that ship, and of installed packages."""
    return COMMANDS | {name: command for one in subjects() for name, command in one.commands.items()}


def find_command(name: str) -> click.Command:
    known = COMMANDS.get(name) or all_commands()[name]
    command: click.Command = found_at(known.place)
    return command


class _Unwritten(Exception):
    """A command could not write an output: its reader has gone, or the disk behind it is full."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


#: Errors of writing to a stream.
_OF_STREAMS = frozenset((errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF))


def _written(call: Callable[..., Any], *given: Any) -> Any:
    """Call a command. Raises _Unwritten: an output cannot be written, which click would take for a failure of the command."""
    try:
        return call(*given)
    except OSError as error:
        # An error of a file names the file, and one of a socket has no place here.
        is_of_stream = error.filename is None and error.errno in _OF_STREAMS
        raise (_Unwritten(error) if is_of_stream else error) from None


class _Commands(HelpInPortions, click.Group):
    """Knows every command by name, loads one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(all_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name) if cmd_name in COMMANDS or cmd_name in all_commands() else None

    def groups(self, ctx: click.Context) -> dict[str, HelpGroup]:
        known = all_commands()
        return {
            group: HelpGroup(
                [Entry(name, one.text, name not in RARE) for name, one in known.items() if one.group == group],
                GROUPS.get(group, ""),
            )
            for group in dict.fromkeys([*GROUPS, *(command.group for command in known.values())])
        }

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.meta.get(ASKED, "") in ("", EVERYTHING):
            click.Command.format_options(self, ctx, formatter)
        write_groups(self.groups(ctx), ctx, formatter, "gossamer", "commands")

    def invoke(self, ctx: click.Context) -> Any:
        return _written(super().invoke, ctx)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] == "help":
            if args[1:]:
                return self.resolve_command(ctx, [args[1], "--help"])
            click.echo(ctx.get_help())
            ctx.exit()
        if args and not args[0].startswith("-") and args[0] not in COMMANDS and args[0] not in all_commands():
            from gossamer.cli.elsewhere import same_command

            told = same_command(args[0]) or _near(args[0], all_commands()) or "; `gossamer --help all` lists them"
            raise click.UsageError(f"there is no command {args[0]!r}{told}")
        return super().resolve_command(ctx, args)


def _install_completion(context: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is None:
        return
    from gossamer.cli.setup import install

    click.echo(install(commands, shell))
    context.exit()


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
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
@click.pass_context
def commands(context: click.Context) -> None:
    """Gossamer crawls the web: politely, exactly, and so that you can see into it.

    \b
    gossamer crawl https://example.org/ --contact you@example.org
    gossamer crawl --help
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit status. Without `arguments` the process is this command's alone."""
    if arguments is not None:
        return finish(_run(arguments))
    own_process()
    print_anything()
    guard_terminal()
    click.Context.formatter_class = CalledHelp  # of every command, and of those below them
    with interruptible():
        code = _run(None)
    return finish(code)


def _run(arguments: Sequence[str] | None) -> int:
    """Run a command, and turn every error into one line and an exit status."""
    given = list(arguments) if arguments is not None else None
    try:
        words = sys.argv[1:] if given is None else given
        _check_text(words)
        result = _far(words)
        if result is None:
            result = commands.main(args=given, prog_name="gossamer", standalone_mode=False)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        return _refuse(_wrong_use(error, sys.argv[1:] if given is None else given), 2)
    except click.ClickException as error:
        return _refuse(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        return 3
    except _Unwritten as output:
        return unwritten(output.error, 0)
    except OSError as error:
        if error.errno not in _OF_NAMES or not isinstance(error.filename, str):
            raise
        return _refuse(f"{error.filename}: {error.strerror or error}; name another, or see to your rights there", 2)
    except Exception as error:
        code = getattr(error, "exit_code", None)
        if isinstance(code, int):
            return _refuse(str(error), code)
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":  # DuckDB's own
            return _refuse("there is not enough memory for this; what was committed is kept, so try again with more", 4)
        raise
    return result if isinstance(result, int) else 0


def _far(words: Sequence[str]) -> Any:
    """The exit status of a command that is run by a cluster, since the crawl that it names is there, as `ray:mycrawl`; None: it
    names none. Behind a directory of a crawl, such a word is something else, as a word that is searched for."""
    for place, word in enumerate(words):
        cluster, colon, crawl = word.partition(":")
        if place and colon and crawl and not crawl.startswith("//"):
            for one in subjects():
                if cluster in one.far_commands and not any(Path(before).is_dir() for before in words[1:place]):
                    return _written(found_at(one.far_commands[cluster]), words, crawl)
    return None


def _wrong_use(error: click.UsageError, arguments: Sequence[str]) -> str:
    """The line that is told of a command that was called the wrong way."""
    called = next(iter(arguments), "")
    where = error.ctx.command_path if error.ctx is not None else "gossamer"
    if where == "gossamer" and called in all_commands():
        where = f"gossamer {called}"
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        error = _no_such_option(error.option_name, error.ctx, arguments)
    message = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        message = f"say which: {', '.join(error.ctx.command.list_commands(error.ctx))}"
    told = " ".join(message.split())  # choices stand on lines of their own there
    is_advised = any(words in told for words in ("did you mean", "--help", "does the same here"))
    return told if is_advised else f"{told} (see {where} --help)"


def _no_such_option(name: str, context: click.Context, arguments: Sequence[str]) -> click.NoSuchOption:
    """The error for an option that a command lacks: it names the option of ours that does the same as one of another crawler,
    or the nearest of those that help shows. Options of earlier versions work, and are no advice."""
    from gossamer.cli.elsewhere import same_option

    records = (param.get_help_record(context) for param in context.command.get_params(context))
    present = [word.strip(",") for record in records if record for word in record[0].split() if word.startswith("--")]
    given = next((one for one in arguments if one.startswith(name)), name)
    if name == "-s" and "--depth" in present:  # a setting of Scrapy: the option is named by it
        setting = given[2:] or next((after for one, after in itertools.pairwise(arguments) if one == name), "")
        told = (
            same_option(setting.partition("=")[0], present) or "; settings are options here, as --depth for DEPTH_LIMIT"
        )
    else:  # several letters may stand behind one hyphen, as `-np`
        told = (same_option(given, present) if len(name) == 2 else "") or same_option(name, present)
        told = told or _near(name, present)
    return click.NoSuchOption(name, f"there is no option {name!r}{told}", ctx=context)


def _near(name: str, known: Iterable[str]) -> str:
    """The name that was meant, as the rest of a sentence; empty where none is near."""
    from gossamer.engine.sheet import nearest

    told = nearest(name, known).partition(" Known: ")[0]
    return told if told.startswith("; did you mean") else ""


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse what is no text: it could neither be asked for nor written down.
    Raises click.UsageError: an argument holds bytes that the locale's encoding does not have."""
    for argument in arguments:
        if not argument.isascii() and any("\ud800" <= character <= "\udfff" for character in argument):
            encoding = sys.getfilesystemencoding()
            raise click.UsageError(f"{argument!a} is not text in {encoding}; use a UTF-8 locale, as LC_ALL=C.UTF-8")


#: Errors of a path that a person gave, by whichever call they came: it cannot be the name of a file, or its owner refuses.
_OF_NAMES = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS}


def _refuse(message: str, code: int) -> int:
    tell(message)
    return code
