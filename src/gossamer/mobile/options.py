"""Options of `gossamer crawl` for crawls that send mobile crawlers, and the wiring that they make: the manager beside the fetchers,
and a ledger in front that lends hosts.

Place in the flow: `--mobile` and the options that belong to it are compiled here, when all others are: a crawler's program is made
of the crawl's own scope, depth, patterns, constraints and gates, so that both mean the same. What a program cannot say is refused.
Agents put their divided ledger in front.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from gossamer.crawls.options import CrawlOptions, part_of
from gossamer.engine.sheet import Sheet, build, setting
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.crawls.builder import Builder

# Settings of the units, too (:mod:`gossamer.mobile.manager.making`, :mod:`gossamer.mobile.manager.links`).

RuntimeKeys = Annotated[
    str,
    setting(
        'Read keys and pins of runtimes from this TOML file: a table ["https://ADDRESS"] with `key` and `pin`. Only its owner '
        "may read it. Without it, GOSSAMER_RUNTIME_KEY and GOSSAMER_RUNTIME_PIN are the key and pin of the only runtime.",
        names="a file",
    ),
]

BroughtElements = Annotated[tuple[str, ...], setting("Let crawlers bring the elements that this CSS selector finds.")]

Irrelevant = Annotated[
    Literal["counts", "rows"],
    setting("Only count irrelevant pages of mobile crawls (counts), or keep a row for each (rows)."),
]


class MobileOptions(Sheet, frozen=True):
    """Where mobile crawlers go, and what they bring."""

    mobile: Annotated[
        bool,
        setting(
            "Send mobile crawlers to the hosts of --runtime, and bring home the relevant pages (--filter 'store: ...'); see "
            "docs/mobile.md."
        ),
    ] = False
    runtime: Annotated[
        tuple[str, ...],
        setting(
            "Send crawlers for HOST to its runtime, as example.org=https://example.org:8443, or read HOST from a folder of this "
            "machine, as example.org=/var/www/html; *.example.org stands for all hosts below example.org.",
            names="a folder",
        ),
    ] = ()
    runtime_keys: RuntimeKeys = ""
    mobile_content: Annotated[
        tuple[Literal["whole", "text", "links", "fingerprint"], ...],
        setting(
            "Let crawlers bring these parts of a relevant page: whole (default), text, links, fingerprint.", was="bring"
        ),
    ] = ()
    mobile_elements: Annotated[BroughtElements, setting(was="bring_elements")] = ()
    irrelevant: Irrelevant = "counts"


#: Names of the new units in the wiring.
LENT, LENDING, LINKS, CRAWLERS = "lent", "lending", "runtimes", "crawlers"

#: Gates that a program has.
_GATES = ("follow", "expand", "store")

#: Options that say something of pages at a runtime that no program can say, with the reason; docs/mobile.md lists them.
_UNSAYABLE: Mapping[str, str] = {
    "normalize": "crawlers know only the usual normal form",
    "ads": "crawlers always leave out the usual noise",
    "max_links": "crawlers always keep the usual number of links",
    "max_page_size": "the owner of a runtime says how large a page may be",
    "sitemaps": "home does not read the robots.txt of hosts with a runtime; give their sitemaps as seeds",
    "follow_nofollow": "crawlers do not follow such links",
    "page_requisites": "crawlers follow the links of pages alone",
    "mirror": "it needs page requisites",
    "language": "crawlers follow the links of a page before its language is known",
    "topic": "crawlers judge pages by filters alone; give --filter 'store: keywords(...)'",
    "topic_page": "crawlers judge pages by filters alone; give --filter 'store: keywords(...)'",
    "relevance": "crawlers judge pages by filters alone; give --filter 'store: keywords(...)'",
    "recrawl": "crawlers do not come back to known pages",
}

_STRATEGIES = {"breadth": "breadth", "depth": "depth", "host-breadth": "host-breadth", "priority": "breadth"}


def wire(builder: "Builder") -> None:
    """Let the crawl send crawlers, if the options say so; one that does already keeps it, with other runtimes if some are given.
    Raises UsageError: the options do not fit. Raises WiringError: the wiring lacks a unit, or something bears a name that is
    needed here."""
    mobile = part_of(builder.options, MobileOptions)
    wiring = builder.wiring
    is_mobile = CRAWLERS in wiring.components and wiring.components[CRAWLERS].use == CRAWLERS
    if not (mobile.mobile or is_mobile):
        usual = MobileOptions()
        for option in MobileOptions.__struct_fields__:
            if getattr(mobile, option) != getattr(usual, option):
                named = option.replace("_", "-")
                raise UsageError(f"--{named} is for crawls that send crawlers; give --mobile as well")
        return
    if is_mobile:
        if mobile.runtime:
            builder.set("runtime", LENT, {"runtimes": _runtimes(mobile.runtime)})
            builder.set("runtime", LINKS, _links(mobile))
        return
    if not mobile.runtime:
        raise UsageError("--mobile sends crawlers to runtimes; name them: --runtime HOST=https://ADDRESS")
    from gossamer.crawls.compiling import normal_seeds  # what compiles a crawl is no matter of its help
    from gossamer.parsing.filters import by_gate

    gates = by_gate(builder.options.filter)
    _check(builder.options, gates)
    seeds = normal_seeds(wiring, builder.seeds) if builder.seeds and mobile.mobile else ()
    _send(builder, mobile, _settings(builder.options, mobile, seeds, gates))


def _links(mobile: MobileOptions) -> dict[str, Any]:
    """The settings of the links: an address that can never be reached is refused before anything is touched.
    Raises UsageError: an address cannot be used, or its key is not known."""
    from gossamer.mobile.manager.links import checked_runtime_url
    from gossamer.mobile.manager.making import runtime_key

    keys = str(Path(mobile.runtime_keys).absolute()) if mobile.runtime_keys else ""
    elsewhere = sorted({address for address in _runtimes(mobile.runtime).values() if "://" in address})
    for address in elsewhere:
        checked_runtime_url(address, runtime_key(address, keys).pin)
    return {**({"keys": keys} if keys else {}), **({"addresses": elsewhere} if elsewhere else {})}


def _runtimes(given: Sequence[str]) -> dict[str, str]:
    """Host -> address of its runtime. Raises UsageError: an entry cannot be read."""
    from gossamer.values.hosts import HostTable

    found: dict[str, str] = {}
    for entry in given:
        host, sign, address = entry.partition("=")
        if not (host and sign and address):
            raise UsageError(f"--runtime {entry}: write HOST=https://ADDRESS, or HOST=FOLDER for files of this machine")
        if host in found:
            raise UsageError(f"--runtime {host}: given twice; one host has one runtime")
        if "://" not in address:
            if not Path(address).is_dir():
                raise UsageError(
                    f"--runtime {host}={address}: no such folder; name the site's files, or https://ADDRESS"
                )
            address = str(Path(address).absolute())
        found[host] = address
    HostTable(found)
    return found


def _check(options: CrawlOptions, gates: Iterable[str]) -> None:
    usual = type(options)()
    for option, why in _UNSAYABLE.items():
        if getattr(options, option, None) != getattr(usual, option, None):
            raise UsageError(f"--{option.replace('_', '-')} does not go with --mobile: {why}")
    if options.strategy not in _STRATEGIES:
        known = ", ".join(_STRATEGIES)
        raise UsageError(f"--strategy {options.strategy} does not go with --mobile; known to crawlers: {known}")
    if options.strategy == "depth" and options.depth is not None:
        raise UsageError("--strategy depth with --depth does not go with --mobile: only breadth meets shortest ways")
    for gate in gates:
        if gate not in _GATES:
            raise UsageError(f"--filter '{gate}: ...' does not go with --mobile; crawlers have {', '.join(_GATES)}")


def _settings(
    options: CrawlOptions, mobile: MobileOptions, seeds: Sequence[str], gates: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The settings of the manager. Raises UsageError: no crawler can be made of them."""
    from gossamer.mobile.crawler import CrawlerRefused, check_crawler  # a crawl without crawlers needs none of it
    from gossamer.mobile.manager.making import CrawlersSheet, crawler_for
    from gossamer.values.task import Task
    from gossamer.values.url import host_of

    follow = list(gates.get("follow", ()))
    if options.include:
        follow.append(" or ".join(f"url matches {_quoted(pattern)}" for pattern in options.include))
    follow += [f"not url matches {_quoted(pattern)}" for pattern in options.exclude]
    if options.only:
        follow.append(f"domain({', '.join(map(_quoted, options.only))})")
    if options.never:
        follow.append(f"not domain({', '.join(map(_quoted, options.never))})")
    settings: dict[str, Any] = {
        "scope": options.scope,
        "seeds": list(seeds),
        "follow": _all_of(follow),
        "expand": _all_of(gates.get("expand", ())),
        "store": _all_of(gates.get("store", ())),
        "traversal": _STRATEGIES[options.strategy],
        "irrelevant": mobile.irrelevant,
    }
    if options.depth is not None:
        settings["depth"] = options.depth
    if options.max_pages_per_host is not None:
        settings["urls"] = options.max_pages_per_host
    if mobile.mobile_content or mobile.mobile_elements:
        settings["parts"] = list(mobile.mobile_content)
        settings["elements"] = list(mobile.mobile_elements)
    sheet = build(CrawlersSheet, settings)
    try:
        check_crawler(crawler_for(sheet, [Task(seed, host_of(seed)) for seed in seeds[:1]], ""))
    except CrawlerRefused as refusal:
        raise UsageError(f"--mobile: no crawler can be made of these options: {refusal}") from None
    return {name: value for name, value in settings.items() if value or name == "parts"}


def _all_of(expressions: Sequence[str]) -> str:
    return expressions[0] if len(expressions) == 1 else " and ".join(f"({one})" for one in expressions)


def _quoted(text: str) -> str:
    """A value as the language of expressions takes it, whatever is in it."""
    escaped = text.replace("'", "\\'")
    return f"'{escaped}'"


def _send(builder: "Builder", mobile: MobileOptions, settings: dict[str, Any]) -> None:
    from gossamer.engine.wiring import ComponentPlan

    links = _links(mobile)
    wiring, components = builder.wiring, builder.wiring.components
    frontier, commit, fetch = (wiring.only(use, "--mobile needs") for use in ("frontier", "commit", "fetch"))
    filters, contents = wiring.only("filter", "--mobile needs"), wiring.only("content-seen", "--mobile needs")
    wiring.check_free("--mobile needs", providers=(LENT, LENDING, LINKS))
    roles: dict[str, Any] = components[commit].providers
    crawlers = {
        "lent": LENT,
        "links": LINKS,
        "ledger": LENDING,
        **{role: roles[role] for role in ("flights", "seen", "traversal", "prioritizer", "task_gates")},
        "contents": components[contents].providers["contents"],
        "politeness": components[frontier].providers["politeness"],
        "filters": components[filters].providers["filters"],
    }
    plan = ComponentPlan(CRAWLERS, {"outbox": components[fetch].ports["visits"]}, crawlers, settings)
    builder.wiring = msgspec.structs.replace(wiring, components={**components, CRAWLERS: plan})
    builder.add_provider(LENT, "lent-urls", {"runtimes": _runtimes(mobile.runtime)}, {"ledger": roles["ledger"]})
    builder.add_provider(LENDING, "lending-ledger", {}, {"behind": roles["ledger"], "lent": LENT})
    builder.add_provider(LINKS, "configured-runtimes", links)
    builder.bind(frontier, ledger=LENDING, lent={"hosts": [LENT]})
    builder.bind(commit, ledger=LENDING)
