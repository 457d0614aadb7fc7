"""The options of a crawl: one table, read by the command line, the Python API, configuration files and the reference.

Every option is a field of some unit's sheet in the end: `sets` names it where the value is the same, and
:mod:`gossamer.crawls.compiling` has a rule where it is not. Here they have the names and the words that people use.
:class:`CrawlOptions` has those of the core; where a unit has the same setting, :mod:`gossamer.values.settings` has its type and
text. A subject, of ours or of a stranger, brings a sheet of its own (:mod:`gossamer.engine.subjects`): :func:`all_options` puts
all of them into one flat sheet, and :func:`part_of` gives a subject its part.
"""

import typing
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from gossamer.crawls.basic_options import BasicOptions, fixed_at_start, fixed_by_graph
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import Sheet, metas, setting
from gossamer.engine.subjects import found_at, shipped, subjects
from gossamer.values import settings

# Why an option cannot change while a crawl runs.
_SEEDS = "the seeds decide who may see it; stop the crawl, and give it to gossamer resume"


class CrawlOptions(BasicOptions, frozen=True):
    """The options of `gossamer crawl` and `gossamer.crawl()`: those of its base, then network and results."""

    user_agent: settings.UserAgent = ""
    contact: Annotated[
        str,
        setting(
            "Give site owners this URL or mail address as your contact; required to crawl beyond this machine. "
            "GOSSAMER_CONTACT sets it too."
        ),
    ] = ""
    header: Annotated[
        tuple[str, ...],
        setting(
            "Send this header field, as `Name: value`; one that looks secret, as `X-Api-Key`, goes to the seeds' hosts alone, and "
            "no archive holds it."
        ),
    ] = ()
    header_for: Annotated[
        tuple[str, ...],
        setting(
            "Send the fields of --header that look secret to this HOST too, on every port unless it is HOST:PORT.",
            restart=_SEEDS,
        ),
    ] = ()
    auth: Annotated[
        tuple[str, ...],
        setting(
            "Send HOST=USER:PASSWORD, or USER:PASSWORD for the seeds' hosts, to that host alone. HOST=$NAME and HOST=@FILE take "
            "USER:PASSWORD or `Bearer TOKEN` from the environment or a file, and keep it out of crawl.toml.",
            restart=_SEEDS,
            secret=True,
            names="a secret",
        ),
    ] = ()
    cookies: Annotated[settings.Cookies, setting(sets="http")] = "off"
    cookie_file: Annotated[settings.CookieFile, fixed_at_start()] = ""
    proxy: settings.Proxies = ()
    http2: Annotated[settings.Http2, setting(sets="http")] = False
    ca_file: Annotated[settings.CaFile, setting(sets="http")] = ""
    resolve: Annotated[settings.Resolve, setting(sets="dns")] = ()
    allow_network: Annotated[settings.AllowedNetworks, setting(sets="dns.allow_networks")] = ()
    page_requisites: Annotated[
        bool, setting("Also fetch the style sheets, images, scripts and media that pages show, from any host.")
    ] = False
    rdf: Annotated[
        bool,
        fixed_by_graph(
            "Read RDFa, JSON-LD and microdata into triples for `query` and `sparql`, and `meta` and `link` elements "
            "into `items`."
        ),
    ] = False
    language: settings.Language = ()
    follow_nofollow: settings.FollowNofollow = False
    analysis: Annotated[
        Literal["plain", "full"],
        fixed_by_graph(
            "With `full`, also find the language and the fingerprint of each text, and the texts of links; this "
            "takes about 1 ms more per page.",
            was="details",
        ),
    ] = "plain"
    text: Annotated[settings.Text, fixed_by_graph(sets="process")] = "main"
    near_duplicates: Annotated[
        Literal["auto", "off", "report", "skip"],
        fixed_by_graph("Report or skip pages with nearly the same text; `auto` reports them with --analysis full."),
    ] = "auto"
    sinks: Annotated[
        str,
        fixed_at_start("While the crawl runs, write rows to the databases that this TOML file names.", names="a file"),
    ] = ""
    index: Annotated[
        bool,
        fixed_at_start("Keep a full-text index while the crawl runs, for `gossamer search`."),
    ] = False
    items: Annotated[
        tuple[str, ...],
        fixed_at_start(
            "Also write the items that processors find to this file: .jsonl and .csv grow while the crawl runs; .json, .parquet "
            "and .xlsx are written when it stops. KIND=FILE takes only items of one kind.",
            names="a file",
        ),
    ] = ()
    item_columns: Annotated[
        tuple[str, ...], fixed_at_start("Write only this field of items to the files of --items, in this order.")
    ] = ()
    item_key: Annotated[
        tuple[str, ...],
        fixed_at_start(
            "Leave an item out of the files of --items if an earlier one of its kind has the same value in this "
            "field (if repeated, in all of these fields)."
        ),
    ] = ()
    item_formulas: Annotated[
        Literal["disarm", "keep"],
        fixed_at_start(
            "Put an apostrophe before cells of .csv that a spreadsheet would run as a formula (disarm), or leave them (keep)."
        ),
    ] = "disarm"
    mirror: Annotated[
        str,
        fixed_at_start(
            "Write the site to this folder when the crawl stops, with links rewritten so that it can be browsed without a "
            "server; includes --page-requisites.",
            names="a folder",
        ),
    ] = ""
    triple_store: Annotated[
        str,
        fixed_at_start(
            "Also send triples to the store at this URL, by SPARQL updates; GOSSAMER_TRIPLE_STORE_AUTH is its USER:PASSWORD.",
            names="a secret",
        ),
    ] = ""
    no_warc: Annotated[bool, fixed_by_graph("Keep no archive.")] = False
    archive: Annotated[
        tuple[str, ...],
        fixed_at_start(
            "Also write archive files to this folder on another disk, in turn with the crawl directory.",
            names="a folder",
        ),
    ] = ()


@lru_cache(maxsize=1)
def settings_of_options() -> dict[str, list[tuple[str, str]]]:
    """Option -> the settings that get its value, as (unit, setting). One that is left at its default sets nothing."""
    found: dict[str, list[tuple[str, str]]] = {}
    for sheet in CrawlOptions.__mro__:  # the annotations as they stand: to evaluate them takes 20 ms
        for name, hint in getattr(sheet, "__annotations__", {}).items():
            places = " ".join((meta.extra or {}).get("sets", "") for meta in metas(hint))
            for unit, _, own in (place.partition(".") for place in places.split()):
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
        "max_bytes max_page_size total_time min_free_disk memory until",
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
        "no_warc archive analysis text near_duplicates item_columns item_key item_formulas index sinks triple_store",
        "gossamer crawl https://example.org/ --mirror site --items items.csv",
    ),
    "Many processes": Heading(
        "agents",
        "max_agents concurrency cluster listen secret_file agent_wheel crawlers designation masters policy place agent_place "
        "exchange agent exchange_key",
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
    """The options of the core and of all subjects, as one flat sheet. `installed`: with those of installed packages, and not
    only of the subjects that ship. Raises WiringError: two subjects bring an option of one name."""
    members = subjects() if installed else shipped()
    return merged_options(tuple((one.name, one.options) for one in members if one.options))


@lru_cache(maxsize=4)
def merged_options(members: tuple[tuple[str, str], ...]) -> type[CrawlOptions]:
    """The options of the core and of these subjects, each with its name and the place of its sheet. A subject
    changes the wiring, so that its options cannot change while a crawl runs, whether they say why or not."""
    owners = dict.fromkeys(CrawlOptions.__struct_fields__, "the core")
    fields: list[tuple[str, Any, Any]] = []
    for name, place in members:
        sheet: type[Sheet] = found_at(place)
        hints = typing.get_type_hints(sheet, include_extras=True)
        for field in msgspec.structs.fields(sheet):
            if (other := owners.setdefault(field.name, name)) != name:
                raise WiringError(f"subject {name!r}: option {field.name!r} is taken by {other}; rename it")
            hint = hints[field.name]
            if not any("restart" in (meta.extra or {}) for meta in metas(hint)):
                hint = Annotated[hint, fixed_by_graph()]
            fields.append((field.name, hint, field.default))
    made: Any = msgspec.defstruct("CrawlOptions", fields, bases=(CrawlOptions,), frozen=True, kw_only=True)
    found: type[CrawlOptions] = made
    return found


def part_of(options: CrawlOptions, sheet: type[S]) -> S:
    """A subject's part of the options of a crawl; its defaults where these are options of the core alone."""
    return sheet(**{name: getattr(options, name) for name in sheet.__struct_fields__ if hasattr(options, name)})
