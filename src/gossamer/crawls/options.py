"""The options of a crawl: one table, read by the command line, the Python API, configuration files and the reference.

Every option is a field of some unit's sheet in the end: `sets` names it where the value is the same, and
:mod:`gossamer.crawls.compiling` has a rule where it is not. Here they have the names and the words that people use.
:class:`CrawlOptions` has those of the core, in four parts. A subject, of ours or of a stranger,
brings a sheet of its own (:mod:`gossamer.engine.subjects`): :func:`all_options` puts all of them into one flat sheet, and
:func:`part_of` gives a subject its part.
"""

import typing
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from gossamer.crawls.result_options import ResultOptions
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import Sheet
from gossamer.engine.subjects import found_at, shipped, subjects


class CrawlOptions(ResultOptions, frozen=True):
    """The options of `gossamer crawl` and `gossamer.crawl()`."""


@lru_cache(maxsize=1)
def settings_of_options() -> dict[str, list[tuple[str, str]]]:
    """Option -> the settings that get its value, as (unit, setting). One that is left at its default sets nothing."""
    found: dict[str, list[tuple[str, str]]] = {}
    for sheet in CrawlOptions.__mro__:  # the annotations as they stand: to evaluate them takes 20 ms
        for name, hint in getattr(sheet, "__annotations__", {}).items():
            for meta in (meta for part in (hint, *typing.get_args(hint)) for meta in getattr(part, "__metadata__", ())):
                for unit, _, own in (place.partition(".") for place in meta.extra["sets"].split()):
                    found.setdefault(name, []).append((unit, own or name))
    return found


class Heading(NamedTuple):
    """Options that stand together in the help."""

    usual: str
    """Names of options that `gossamer crawl --help` shows, in their order."""
    others: str
    """Those that its help shows when the group, or everything, is asked for."""
    example: str


#: The options of the core under the headings of `gossamer crawl --help`, in their order. Those of subjects stand behind them.
HEADINGS = {
    "Start": Heading(
        "output resume overwrite seed_files config",
        "sets wiring_name accept_loss",
        "gossamer crawl --seeds seeds.txt --config my.toml -o mine",
    ),
    "Scope": Heading(
        "scope include exclude depth page_requisites",
        "sitemaps only never filter language follow_nofollow normalize ads max_links traps release",
        "gossamer crawl https://example.org/docs/ --scope prefix --depth 3 --exclude '\\?print='",
    ),
    "Limits": Heading(
        "max_pages max_time max_pages_per_host",
        "max_bytes max_page_size total_time min_free_disk until",
        "gossamer crawl https://example.org/ --max-pages 1000 --max-time 10m --min-free-disk 5GB",
    ),
    "Politeness": Heading(
        "delay per_host rate robots",
        "domain_delay ip_delay bandwidth robots_cache i_own_these_hosts retries linger hosts",
        "gossamer crawl http://localhost:8000/ --delay 0 --per-host 4",
    ),
    "Order": Heading("strategy", "", "gossamer crawl https://example.org/ --strategy host-breadth"),
    "Identity and network": Heading(
        "contact user_agent header cookies proxy",
        "header_for auth cookie_file http2 ca_file resolve allow_network",
        "gossamer crawl https://example.org/ --contact you@example.org --proxy socks5h://127.0.0.1:1080",
    ),
    "Results": Heading(
        "items mirror rdf",
        "no_warc analysis text near_duplicates item_columns item_key item_formulas index sinks triple_store",
        "gossamer crawl https://example.org/ --mirror site --items items.csv",
    ),
    "Many processes": Heading(
        "agents",
        "max_agents concurrency crawlers designation masters policy place agent_place exchange agent exchange_key",
        "gossamer crawl --seeds seeds.txt --agents 4 --concurrency 256",
    ),
    "Output": Heading(
        "as_json quiet dashboard fail_on", "verbose", "gossamer crawl https://example.org/ --json > summary.json"
    ),
}

S = TypeVar("S", bound=Sheet)


def headings() -> dict[str, Heading]:
    """The headings of the help: those of the core, then the titles of subjects."""
    found = dict(HEADINGS)
    for one in subjects():
        if one.options:
            names = " ".join(found_at(one.options).__struct_fields__)
            known = found.get(one.title, Heading("", "", one.example))
            part = "others" if one in shipped() else "usual"  # people install a package for its options
            found[one.title] = known._replace(**{part: f"{getattr(known, part)} {names}".strip()})
    return found


def all_options(*, installed: bool = True) -> type[CrawlOptions]:
    """The options of the core and of all subjects, as one flat sheet.

    Args:
        installed: with those of installed packages, and not only of the subjects that ship.

    Raises:
        WiringError: two subjects bring an option of one name.
    """
    members = subjects() if installed else shipped()
    return merged_options(tuple((one.name, one.options) for one in members if one.options))


@lru_cache(maxsize=4)
def merged_options(members: tuple[tuple[str, str], ...]) -> type[CrawlOptions]:
    """The options of the core and of these subjects, each with its name and the place of its sheet."""
    owners = dict.fromkeys(CrawlOptions.__struct_fields__, "the core")
    fields: list[tuple[str, Any, Any]] = []
    for name, place in members:
        sheet: type[Sheet] = found_at(place)
        hints = typing.get_type_hints(sheet, include_extras=True)
        for field in msgspec.structs.fields(sheet):
            if (other := owners.setdefault(field.name, name)) != name:
                raise WiringError(f"subject {name!r}: option {field.name!r} is taken by {other}; rename it")
            fields.append((field.name, hints[field.name], field.default))
    made: Any = msgspec.defstruct("CrawlOptions", fields, bases=(CrawlOptions,), frozen=True, kw_only=True)
    found: type[CrawlOptions] = made
    return found


def part_of(options: CrawlOptions, sheet: type[S]) -> S:
    """A subject's part of the options of a crawl; its defaults where these are options of the core alone."""
    return sheet(**{name: getattr(options, name) for name in sheet.__struct_fields__ if hasattr(options, name)})
