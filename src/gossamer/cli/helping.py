"""Help in portions: `--help` shows the usual commands or options, `--help GROUP` one group whole, `--help all` everything.

Place in the flow: :mod:`gossamer.cli.main` lists commands in groups, :mod:`gossamer.cli.options` the options of a crawl.
Both give their groups to :func:`write_groups`, which knows what was asked for. No library for grouped help is used: those
that there are import more than all of click, and none shows a part.
"""

import contextlib
import datetime
import errno
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

import click

from gossamer.cli.saying import as_called, name_as, tell

if TYPE_CHECKING:
    from gossamer.storage.tables.manifest import Damage

F = TypeVar("F", bound=Callable[..., Any])

#: Where a context keeps what was asked for: a heading, EVERYTHING, or nothing for what people use.
ASKED = "gossamer.help"
EVERYTHING = "all"

#: Columns of help on a wide terminal.
WIDTH = 100


class Entry(NamedTuple):
    name: str
    text: str
    is_usual: bool


class HelpGroup(NamedTuple):
    entries: Sequence[Entry]
    example: str = ""


class CalledHelp(click.HelpFormatter):
    """Writes help whose commands begin with the launcher that was called, so that they can be copied."""

    def getvalue(self) -> str:
        return as_called(super().getvalue())


class HelpInPortions(click.Command):
    """A command whose `--help` takes the name of a group."""

    def groups(self, ctx: click.Context) -> Mapping[str, HelpGroup]:
        raise NotImplementedError

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """`--help`, with a group behind it or without."""

        def show(context: click.Context, _: click.Parameter, asked: str | None) -> None:
            if asked is None or context.resilient_parsing:
                return
            context.meta[ASKED] = _heading(self.groups(context), asked) if asked else ""
            click.echo(self.get_help(context), color=context.color)
            context.exit()

        return click.Option(
            self.get_help_option_names(ctx),
            is_flag=False,
            flag_value="",
            metavar="[GROUP]",
            is_eager=True,
            expose_value=False,
            callback=show,
            help="Show this help, one group of it, or with `all` everything.",
        )

    def get_help(self, ctx: click.Context) -> str:
        """The help, as wide as the terminal, at most :data:`WIDTH` columns."""
        ctx.max_content_width = WIDTH
        return super().get_help(ctx)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description of the command, which a person who asks for one group knows already."""
        if not _is_one(ctx):
            super().format_help_text(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The last words, but for one group."""
        if not _is_one(ctx):
            super().format_epilog(ctx, formatter)


def _is_one(ctx: click.Context) -> bool:
    return ctx.meta.get(ASKED, "") not in ("", EVERYTHING)


def _heading(groups: Mapping[str, HelpGroup], asked: str) -> str:
    """The heading that is meant: by its beginning, or by one of its words. Raises click.UsageError: none is."""
    wanted = asked.lower().replace("-", " ").strip()
    if wanted == EVERYTHING:
        return EVERYTHING
    for heading in groups:
        if wanted and (heading.lower().startswith(wanted) or wanted in heading.lower().split()):
            return heading
    words = [key_of(heading) for heading in groups]
    raise click.UsageError(f"--help knows no group {asked!r}; groups: {', '.join(words)}, all")


def key_of(heading: str) -> str:
    """The word by which a group is asked for: the first of its heading that says something."""
    words = [word for word in heading.lower().split() if word not in ("a", "and", "is", "to", "what")]
    return words[0]


def write_groups(
    groups: Mapping[str, HelpGroup], ctx: click.Context, formatter: click.HelpFormatter, called: str, kind: str
) -> None:
    """Write what was asked for of these groups, and how to ask for more. `called` is the command as it is typed, `kind` what
    stands in the groups, in the plural."""
    asked = ctx.meta.get(ASKED, "")
    for heading, group in groups.items():
        if asked and asked not in (EVERYTHING, heading):
            continue
        entries: list[Any] = [one for one in group.entries if asked or one.is_usual]
        if not entries:
            continue
        with formatter.section(heading):
            formatter.write_dl([(one.name, one.text if asked else _brief(one.text)) for one in entries])
            if asked and group.example:
                formatter.write(f"\n{'':{formatter.current_indent}}Example: {group.example}\n")
    if asked != EVERYTHING:
        keys = ", ".join(key_of(heading) for heading, group in groups.items() if group.entries)
        count = sum(len(group.entries) for group in groups.values())
        formatter.write_paragraph()
        formatter.write_text(
            f"`{called} --help all` shows all {count} {kind}, `{called} --help GROUP` one group: {keys}."
        )


def _brief(text: str) -> str:
    """The first clause of a text of help: the whole text stands in the help of its group."""
    default = f" [default:{text.partition(' [default:')[2]}" if " [default:" in text else ""
    first = text.partition(" [default:")[0].removesuffix(" (repeatable).")
    for end in (". ", "; "):
        first = first.partition(end)[0]
    return f"{first.removesuffix('.')}.{default}"


def option(spec: str, text: str, **more: Any) -> Callable[[F], F]:
    """An option of a command.

    Args:
        spec: its names, its parameter where that is not the longest of them, and a word for its value with dots where it can be
            repeated, as `--host hosts HOST...`. With neither a word nor a type or default it is a flag.
        text: of the help.
        more: as of :func:`click.option`.
    """
    words = spec.split()
    if not words[-1].startswith("-") and not words[-1].islower():
        word = words.pop()
        more |= {"metavar": word.removesuffix("..."), "multiple": word.endswith("...")}
    elif not more:
        more["is_flag"] = True
    elif isinstance(kind := more.get("type"), click.IntRange | click.FloatRange):
        more["metavar"] = "N"
        kind.name = "number of seconds" if isinstance(kind, click.FloatRange) else "whole number"
    return click.option(*words, help=text, **more)


class RenamedOption(click.Option):
    """An option whose help shows its present name; a name that it had works all the same."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The record without an old name."""
        from gossamer.engine.sheet import option_name

        given = self.opts
        self.opts = [name for name in given if not name.startswith("--") or name == option_name(self.name or "")]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = given


class Seconds(click.FloatRange):
    """A time that can be waited for: `nan` lies in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        return self.fail(f"{value!r} is not a valid {self.name}.", param, ctx) if isnan(seconds) else seconds


as_json = option("--json as_json", "Print one line of JSON.")


#: Where the context of a command says which store it reads.
STORE = "gossamer.store"

#: Where it says how many bytes of crawls in stores may lie here.
_CACHE = "gossamer.cache"


def crawl_to_read(command: F, *, whole: bool = True) -> F:
    """The argument DIR of a command that changes nothing: the directory of a crawl, or the store of one that is elsewhere, whose
    last checkpoint then lies in a cache here, unless the command does not need it `whole`."""

    def here(ctx: click.Context, param: click.Parameter, given: str) -> str:
        if Path(given, "crawl.toml").exists():
            return given
        from gossamer.backup.elsewhere import is_store, read_here
        from gossamer.storage.tables.places import begun_crawl

        if not is_store(given):
            if "://" in given:
                begun_crawl(given)  # refuses the URL of a page
            return given
        directory, ctx.meta[STORE] = read_here(given, ctx.meta[_CACHE]) if whole else (given, given)
        name_as(str(directory), ctx.meta[STORE])
        return str(directory)

    def most(ctx: click.Context, param: click.Parameter, given: str) -> None:
        from gossamer.engine.sheet import parse

        try:
            ctx.meta[_CACHE] = parse(given, "bytes")
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    asked = {"default": "10GB", "show_default": True, "callback": most, "expose_value": False, "is_eager": True}
    text = "Where DIR is a store: let all crawls that were read take at most this much of the disk."
    found = click.argument("directory", metavar="DIR", callback=here)(command)
    return option("--cache SIZE", text, **asked)(found) if whole else found


# Answers of commands: the options that say in which form and where, and instants as people write them.


def digits_of(option: str, text: str) -> str:
    """The digits by which a time names a version of a document, as `20260301` or `2026-03-01T12:00`, in UTC.
    Raises UsageError: it is no time."""
    from gossamer.values.errors import UsageError

    digits = "".join(letter for letter in text if letter.isdigit())
    if not 4 <= len(digits) <= 14 or set(text) - set("0123456789-:/. TZ"):
        raise UsageError(f"{option} {text}: name a version by its time in UTC, as 20260301 or 2026-03-01T12:00")
    return digits


def instant(option: str, text: str | None) -> datetime.datetime | None:
    """The instant in an option of this name: `2026-03-01`, `2026-03-01T12:00`, both in UTC unless they name a zone, or `7d` for
    seven days ago. Raises UsageError: it is none of these."""
    if text is None:
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        from gossamer.engine import sheet
        from gossamer.values.errors import UsageError

        try:
            if text[-1:].isdigit():
                raise ValueError
            return datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=sheet.parse(text, "s"))
        except (ValueError, OverflowError):
            raise UsageError(
                f"{option} {text}: write a time, as 2026-03-01, 2026-03-01T12:00, or 7d for a week ago"
            ) from None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


to_file = option("-o --output FILE", "Write to a file instead of standard output.")

raw_cells = option("--raw", "Write CSV without an apostrophe before cells that a spreadsheet would run as a formula.")


def in_form(forms: Sequence[str], text: str) -> Callable[[F], F]:
    """The option for the form of an answer; a table unless told."""
    choice = click.Choice(forms)
    return click.option("-f", "--format", "form", type=choice, default="table", show_default=True, help=text)


@contextlib.contextmanager
def opened(output: str | None) -> Iterator[TextIO]:
    """The file, or standard output. Raises UsageError: the file cannot be written."""
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    from gossamer.values.errors import UsageError

    path = Path(output)
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:  # one of writing names no file
        is_of_disk = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
        if is_of_disk or error.filename == str(path):
            raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None
        raise


def tell_damage(damaged: "Sequence[Damage]") -> int:
    """Say which files an answer is without; returns the exit status."""
    for damage in damaged:
        tell(f"{damage}: its rows are not in this answer; bring it back from a copy")
    if not damaged:
        return 0
    from gossamer.values.errors import CrawlDirectoryError

    return CrawlDirectoryError.exit_code
