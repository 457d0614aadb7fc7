"""Command-line options made from the table of crawl options: one source for names, types, bounds and words."""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click
import msgspec

from gossamer.cli.elsewhere import same_option
from gossamer.cli.helping import Entry, HelpGroup, HelpInPortions, RenamedOption, write_groups
from gossamer.cli.saying import given_text
from gossamer.crawls.options import CrawlOptions, all_options, headings
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Property, build, nearest, option_name, properties, renamed, show_quantity
from gossamer.values.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

_SHORT = {"output": "-o"}

#: Values of options in a word, where neither unit nor choices say it.
_VALUES = {"include": "RE2", "exclude": "RE2", "filter": "EXPRESSION", "until": "EXPRESSION", "header": "FIELD"}
_VALUES |= {"contact": "URL|MAIL", "proxy": "URL", "user_agent": "TEXT", "delay": "TIME|auto", "linger": "TIME|forever"}
_VALUES |= {"only": "PATTERN", "never": "PATTERN", "ads": "drop|keep|FILE"}
_VALUES |= {"normalize": "RULE", "release": "ID|all", "header_for": "HOST", "auth": "[HOST=]USER:PASSWORD"}
_VALUES |= {"resolve": "PATTERN=ADDRESS", "allow_network": "CIDR", "place": "HOSTS=PLACE", "agent_place": "AGENT=PLACE"}
_VALUES |= {"item_columns": "FIELD", "item_key": "FIELD", "triple_store": "URL", "topic": "WORDS", "relevance": "NAME"}
_VALUES |= {"recrawl": "RULE", "recrawl_rate": "SHARE", "interval": "TIME..TIME:EXPRESSION", "browser": "PROGRAM"}
_VALUES |= {"render": "never|auto|always", "render_rule": "CHOICE:EXPRESSION", "runtime": "HOST=URL|DIR"}
_VALUES |= {"mobile_content": "PART", "mobile_elements": "SELECTOR", "store": "URL|DIR"}
_OF_UNIT = {"s": "TIME", "bytes": "SIZE", "bytes/s": "SIZE", "pages/s": "N"}
_OF_NAMED = {"a file": "FILE", "a folder": "DIR"}

#: Characters of choices that still leave room for what the option does.
LONGEST = 20

#: Options that only a configuration file, or a program, gives.
_IN_FILES = frozenset(("hosts",))

#: Options that a crawl which goes on has already.
SETTLED = ("output", "overwrite", "resume")


#: Makes the options of a crawl when a command is called, since two commands of one file have a hundred each.
MakesOptions = Callable[[], list[click.Option]]


class OptionsInGroups(HelpInPortions):
    """A command whose help shows the options of a crawl under headings."""

    _params: list[Any]

    @property
    def params(self) -> list[click.Parameter]:
        """Its arguments and options, those of a crawl among them."""
        if any(map(callable, self._params)):
            self._params = [one for given in self._params for one in (given() if callable(given) else (given,))]
        return self._params

    @params.setter
    def params(self, params: list[Any]) -> None:
        self._params = params

    def make_parser(self, ctx: click.Context) -> click.parser._OptionParser:
        """One that finds `-o` at once: click looks for it among long options first, and imports a library to say what is near."""
        parser = super().make_parser(ctx)
        parser._long_opt |= parser._short_opt
        return parser

    def groups(self, ctx: click.Context) -> dict[str, HelpGroup]:
        """The options under their headings; those of the command alone stand last."""
        options = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        records = {param.name: record for param in options if (record := param.get_help_record(ctx))}
        found = {}
        for title, heading in headings().items():
            usual = heading.usual.split()
            names = [name for name in (*usual, *heading.others.split()) if name in records]
            entries = [Entry(*records.pop(name), name in usual) for name in names]
            found[title] = HelpGroup(entries, heading.example)
        others = [Entry(*record, True) for record in records.values()]
        return found | {"Other": HelpGroup(others, f"gossamer {ctx.info_name} --help all")}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_groups(self.groups(ctx), ctx, formatter, f"gossamer {ctx.info_name}", "options")


def crawl_options(command: F) -> F:
    """Add an option for every field of :class:`CrawlOptions`."""
    return _with(command, lambda: [_gone(), *map(_option, properties(all_options()))])


def resume_options(command: F) -> F:
    """Add those that can still be changed when a crawl goes on; none of them says a default, since the crawl has its own."""

    def made() -> list[click.Option]:
        live = (prop for prop in properties(all_options()) if prop.name not in SETTLED and prop.name not in _IN_FILES)
        return [_gone(), *(_option(msgspec.structs.replace(prop, default=None)) for prop in live)]

    return _with(command, made)


def options_named(names: Sequence[str]) -> Callable[[F], F]:
    """Add the crawl options of these names, for commands that do a part of what a crawl does."""
    return lambda command: _with(command, *(_option(p) for p in reversed(properties(all_options())) if p.name in names))


def _with(command: F, *more: click.Option | MakesOptions) -> F:
    """Add options where click keeps those of decorators until it makes the command."""
    command.__dict__.setdefault("__click_params__", []).extend(more)
    return command


def _gone() -> click.Option:
    """An option of earlier versions, so that :func:`read_options` can say what stands in its place."""
    return click.Option(["--keep-trying"], is_flag=True, default=None, hidden=True)


def _option(prop: Property) -> click.Option:
    names = [option_name(name) for name in (prop.name, prop.was) if name]
    names.append(prop.name)
    if prop.name in _SHORT:
        names.insert(0, _SHORT[prop.name])
    has_none = prop.default in (None, "", ()) or prop.default is False
    shown = "" if has_none else f" [default: {show_quantity(prop.default, prop.unit)}]"
    many = prop.type.startswith("tuple")
    doc = f"{prop.doc[:-1]} (repeatable)." if many and "repeat" not in prop.doc else prop.doc
    text = f"{doc}{shown}"
    if prop.type == "bool":
        return RenamedOption(names, is_flag=True, default=None, help=text)
    metavar, hidden = _metavar(prop), prop.name in _IN_FILES
    return RenamedOption(names, multiple=many, default=None, metavar=metavar, help=text, hidden=hidden)


def _metavar(prop: Property) -> str:
    """The value of an option in a word: its choices, where they are few, or its kind."""
    if prop.name in _VALUES:
        return _VALUES[prop.name]
    if prop.unit in _OF_UNIT:
        return _OF_UNIT[prop.unit]
    choices = "|".join(re.findall(r"'([^']+)'", prop.type))
    if choices and len(choices) <= LONGEST:
        return choices
    return "N" if prop.type.startswith("int") else _OF_NAMED.get(prop.names, prop.name.upper())


def read_options(given: dict[str, Any], config: str | None) -> CrawlOptions:
    """The options of :func:`read_given`, for commands that need no seeds of the file. Errors as those of it."""
    return read_given(given, config)[0]


def read_given(
    given: dict[str, Any], config: str | None, base: Mapping[str, Any] = {}
) -> tuple[CrawlOptions, list[str]]:
    """Options from a configuration file, overridden by those of the command line, and the seeds that the file lists. `base` is what
    holds without either. The file is read once: it may be standard input, or a pipe.
    Raises SettingError: a value that does not do; names the option. Raises UsageError: the file cannot be read, or `seeds` is no
    list of texts."""
    table = read_config(config) if config else {}
    seeds = table.pop("seeds", [])
    if not isinstance(seeds, list) or not all(isinstance(seed, str) for seed in seeds):
        raise UsageError(f'{config}: seeds is a list of URLs, as ["https://example.org/"]')
    values = {**base, **table}
    values |= {name: value for name, value in given.items() if value is not None and value != ()}
    known = {p.name for p in properties(all_options())}
    values = renamed(values, properties(all_options()))
    for name in values:
        if name == "keep_trying":
            raise UsageError("--keep-trying no longer exists; write --linger forever")
        if name not in known:
            raise UsageError(f"{config}: unknown option {name!r}{same_option(name) or nearest(name, known)}")
    if not given.get("resume"):  # a crawl that goes on takes a value back by an empty one
        for name, value in given.items():
            if value == "" or (isinstance(value, tuple) and "" in value):
                raise UsageError(f"{option_name(name)} is empty; give it a value, or leave it out")
    if nul := next((name for name, value in values.items() if "\0" in str(value)), ""):
        raise UsageError(f"{config}: {nul} holds a null character, which no path and no URL can; leave it out")
    try:
        return build(all_options(), values), seeds
    except SettingError as error:
        told = str(error)
        named = re.match(r"setting '(\w+)'", told)
        if named and given.get(named[1]) not in (None, ()):  # a person who gave an option knows it by that name
            told = option_name(named[1]) + told[named.end() :]
        raise SettingError(told) from None


def read_config(path: str) -> dict[str, Any]:
    """The options of a TOML file, with `-` and `_` alike in names; they may stand in a table `[crawl]`."""
    from gossamer.engine.files import toml_of

    plain = toml_of(given_text(path), path, UsageError)
    table = plain.pop("crawl", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: crawl is a table of options, as [crawl]")
    return {name.replace("-", "_"): value for name, value in {**plain, **table}.items()}


def read_sets(pairs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`UNIT.SETTING=VALUE` texts, by unit. Raises UsageError: one has another form."""
    found: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        unit, dot, name = key.rpartition(".")
        # a setting of ours has a unit, and is written in small letters
        if (key != key.lower() or not dot) and (same := same_option(key)):
            raise UsageError(f"--set {pair!r}: there is no setting {key!r}{same}")
        if key.replace("-", "_") in {one.name for one in properties(all_options())}:
            raise UsageError(f"--set {pair!r}: {key!r} is an option; write --{key.replace('_', '-')} {value}")
        if not (equals and dot and unit and name):
            raise UsageError(f"--set {pair!r}: write UNIT.SETTING=VALUE, as frontier.per_host=4")
        found.setdefault(unit, {})[name] = value
    return found


def read_seed_files(files: Sequence[str], hostless: Container[str] = ()) -> list[str]:
    """Seeds from files (`-` is standard input), one on each line; empty lines and `#` comments are passed over. `hostless` are
    schemes that are served though their URLs name no host. Raises UsageError: a file cannot be read, or holds no seed, or a
    line is none; names file and line."""
    from gossamer.values.url import are_plain

    seeds: list[str] = []
    for name in files:
        text = given_text(name, f"seed file {name}")
        lines = tuple(filter(None, map(str.strip, text.split("\n"))))
        source = "standard input" if name == "-" else name
        found = lines if are_plain(lines) else tuple(_seeds_of(text, source, hostless))
        if not found:
            source = "standard input" if name == "-" else f"seed file {name}"
            raise UsageError(f"{source} holds no seed; write one URL on each line")
        seeds += found
    return seeds


def _seeds_of(text: str, source: str, hostless: Container[str]) -> Iterator[str]:
    from gossamer.crawls.plan import is_bare, read_seed

    for number, line in enumerate(text.split("\n"), 1):
        seed = line.strip()
        if not seed or seed.startswith("#"):
            continue
        if not is_bare(seed, hostless):
            try:
                url = read_seed(seed, hostless)
            except UsageError as error:
                raise UsageError(f"{source}, line {number}: {error}") from None
            seed = seed if "@" in seed else url  # a user is still to be asked for
        yield seed
