"""Options to wiring: a plain crawl is a wiring that its options filled in (row C4).

An option names settings of units that get its value (:mod:`options`), or a function of :data:`SETTINGS` says the settings that it
comes to; a crawl that runs is changed by the same settings (:mod:`gossamer.crawls.live`). An option that changes units has a
function in :data:`RULES`. A wiring of the user's own takes the same options as long as it has these units; one that lacks them
says so.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls import identity
from gossamer.crawls.builder import Builder, with_documents, with_protocols
from gossamer.crawls.identity import contact_of, put_hosts, token_of, user_agent
from gossamer.crawls.options import CrawlOptions, settings_of_options
from gossamer.engine import wiring as wirings
from gossamer.engine.errors import SettingError, WiringError
from gossamer.engine.sheet import build
from gossamer.engine.subjects import Subject, found_at, subjects
from gossamer.engine.wiring import ComponentPlan, ProviderPlan, Wiring
from gossamer.fetcher.authentication import fill
from gossamer.fetcher.cookies import CookieJar
from gossamer.fetcher.fetch_stage import root_of
from gossamer.fetcher.proxies import absolute, addresses
from gossamer.frontier.politeness.retries import WAITS
from gossamer.parsing.filters import by_gate
from gossamer.parsing.links import LinksSheet, normaliser
from gossamer.parsing.process_stage import ProcessSheet
from gossamer.values.errors import UsageError
from gossamer.values.url import place_of_site, site_of
from gossamer.values.url_normalization import chosen

#: Robots gates that read robots.txt, by their names in the catalog: the product token of a crawl is set in all of them.
READING_GATES = ("robots", "shared-robots")

#: The name of the store of answers in the wiring.
ANSWERS = "robots-answers"


def share_robots(builder: Builder) -> None:
    """Put a gate that shares answers into the place of the one that obeys. Raises UsageError: robots.txt is not read at all;
    WiringError: the wiring has no gate that can share, or something bears a name that is needed here."""
    wiring, options = builder.wiring, builder.options
    if options.robots == "ignore":
        raise UsageError("--robots-cache shares robots.txt, and --robots ignore never reads it; leave one of them out")
    plan = wiring.providers.get("robots")
    if plan is None or plan.use not in READING_GATES:
        raise WiringError(f"--robots-cache: {wiring.source} has no provider 'robots' that uses 'robots'")
    if ANSWERS in wiring.providers and wiring.providers[ANSWERS].use != ANSWERS:
        raise WiringError(f"{wiring.source}: {ANSWERS}: --robots-cache needs this name; choose another one")
    # The rules are kept without the sitemaps that a file names, so a crawl that fetches these reads the file.
    reads = options.robots_cache == "shared" and not options.sitemaps
    terms: dict[str, Any] = {**plan.settings, "reads": reads, "view": view_of(options)}
    providers = {
        **wiring.providers,
        ANSWERS: wiring.providers.get(ANSWERS) or ProviderPlan(ANSWERS),
        "robots": ProviderPlan("shared-robots", {"answers": ANSWERS}, terms),
    }
    builder.wiring = msgspec.structs.replace(wiring, providers=providers)


def view_of(options: CrawlOptions) -> str:
    """A word for the web as this crawl sees it; empty for the web as every crawler sees it. It tells no secret."""
    differing = {
        "resolve": sorted(options.resolve),
        "proxy": bool(options.proxy),
        "ca_file": options.ca_file,
        # A client that proves its identity may be told rules that others are not.
        "proves": bool(options.auth or options.header or options.cookie_file or getattr(options, "profile", "")),
    }
    if not any(differing.values()):
        return ""
    return hashlib.sha256(msgspec.json.encode(differing, order="sorted")).hexdigest()[:16]


#: Strategy -> its traversal, where that has another name: a subject brings the rest (:mod:`gossamer.labs.options`).
_TRAVERSALS = {"opic": "priority", "trie": "breadth"}

#: Units that a wiring of a person's own may leave out: what an option says of them then says nothing.
OPTIONAL = frozenset({"ftp", "gopher", "file"})

#: Where the shipped wirings lie, as files of the package.
WIRINGS = Path(__file__).parent / "wirings"


def shipped(name: str) -> Wiring:
    """A wiring that ships with the package. Raises WiringError: there is none of that name; lists those that are."""
    known = sorted(path.stem for path in WIRINGS.glob("*.toml"))
    if name not in known:
        raise WiringError(f"there is no shipped wiring {name!r}; known: {', '.join(known)}")
    return wirings.parse((WIRINGS / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")


def find_wiring(name: str) -> Wiring:
    if name.endswith(".toml") or "/" in name or Path(name).exists():
        return wirings.read(Path(name))
    return shipped(name)


def compile_wiring(seeds: Sequence[str], options: CrawlOptions, base: Wiring | None = None) -> Wiring:
    """The wiring of a crawl: `base` (the shipped default) with seeds and options filled in. Raises WiringError: an option that
    was given sets a unit that the wiring does not have."""
    builder = Builder(base or shipped("default"), seeds, options)
    given = msgspec.structs.asdict(options)
    defaults = msgspec.structs.asdict(CrawlOptions())
    for option in (*settings_of_options(), *SETTINGS):
        if given[option] != defaults[option]:
            for unit, values in option_settings(option, options).items():
                if unit not in OPTIONAL or builder.has(unit):
                    builder.set(option, unit, values)
    for option, rule in RULES.items():
        if given[option] != defaults[option]:
            rule(builder)
    for rule in ALWAYS:
        rule(builder)
    return builder.wiring


# -- options that come to settings, in a crawl that begins and in one that runs

Settings = dict[str, dict[str, Any]]
"""Unit -> setting -> value."""


def option_settings(option: str, options: CrawlOptions) -> Settings:
    """The settings that an option comes to, whether a wiring has the units or not. Raises UsageError or SettingError: its value
    does not do."""
    if option in SETTINGS:
        return SETTINGS[option](options)
    made: Settings = {}
    for unit, setting in settings_of_options()[option]:
        made.setdefault(unit, {})[setting] = getattr(options, option)
    return made


def _noise(options: CrawlOptions) -> Settings:
    word = options.ads
    return {"noise": {"drop": word != "keep", "file": "" if word in ("drop", "keep") else word}}


def _requisites(options: CrawlOptions) -> Settings:
    wanted = options.page_requisites or bool(options.mirror)
    return {unit: {"requisites": wanted} for unit in ("html", "css", "scope")}


def _proxy(options: CrawlOptions) -> Settings:
    """Files of proxies are found wherever the crawl goes on; a file that cannot be read is refused before anything is touched."""
    entries = absolute(options.proxy)
    addresses(entries)
    return {"http": {"proxy": list(entries)}, "frontier": {"proxied": bool(entries)}}


#: Option -> the settings that it comes to, where they are not its value.
SETTINGS: dict[str, Callable[[CrawlOptions], Settings]] = {
    "normalize": lambda options: {"links": {"normalise": normal_steps(options.normalize)}},
    "ads": _noise,
    "filter": lambda options: {"expressions": dict(by_gate([text for text in options.filter if text.strip()]))},
    "traps": lambda options: {"traps": {"cut": options.traps == "cut"}},
    "retries": lambda options: {"politeness": {"retries": list(WAITS[: options.retries])}},
    "proxy": _proxy,
    "page_requisites": _requisites,
    "mirror": _requisites,
    "language": lambda options: {"process": {"languages": [word for word in options.language if word]}},
    "follow_nofollow": lambda options: {
        "process": {"obey_nofollow": not options.follow_nofollow},
        "nofollow": {"follow": options.follow_nofollow},
    },
    "analysis": lambda options: {
        "process": {"details": options.analysis},
        "html": {"anchors": options.analysis == "full"},
    },
}


# -- options that change units


def with_fetchers(wiring: Wiring, number: int) -> Wiring:
    """The wiring with a worker for each of so many requests in flight: more would idle, fewer would make slots wait. Raises
    WiringError: it has no such unit."""
    if "fetch" not in wiring.components:
        raise WiringError(f"--concurrency sets unit 'fetch', but {wiring.source} has none")
    plan = msgspec.structs.replace(wiring.components["fetch"], workers=number)
    return msgspec.structs.replace(wiring, components={**wiring.components, "fetch": plan})


def _concurrency(builder: Builder) -> None:
    builder.wiring = with_fetchers(builder.wiring, builder.options.concurrency)


def _agents(builder: Builder) -> None:
    """As many as a person says, and none joins by itself; unless the person says how many may."""
    number, most = builder.options.agents, builder.options.max_agents
    if most is None:
        builder.set_where_present("frontier", {"max_agents": number})
    elif number is not None and most < number:
        raise UsageError(f"--max-agents {most} is less than --agents {number}; leave one of them out")


def _until(builder: Builder) -> None:
    """In a wiring that was written before there were goals, no unit asks for them."""
    wiring = builder.wiring
    for name, plan in wiring.components.items():
        if plan.use == "commit" and "goals" not in plan.providers:
            asked = msgspec.structs.replace(plan, providers={**plan.providers, "goals": {"visits": ["expressions"]}})
            wiring = msgspec.structs.replace(wiring, components={**wiring.components, name: asked})
    builder.wiring = wiring


def _strategy(builder: Builder) -> None:
    """Another traversal. A random walk may come where it was: neither URL-seen nor content-seen (Hunyadi 2007, 2.1)."""
    builder.put("strategy", "traversal", _TRAVERSALS.get(builder.options.strategy, builder.options.strategy))
    if builder.options.strategy == "random-walk":
        builder.set("strategy", "commit", {"again": True})
        builder.set("strategy", "url-seen", {"again": True})
        builder.wiring = _without_content_seen(builder.wiring)


# -- what holds whatever is given


def _subjects(builder: Builder) -> None:
    """The additions of subjects to the crawl: each looks at its own options, and at what an earlier run has wired."""
    for one in subjects():
        if one.wire and _concerns(one, builder):
            found_at(one.wire)(builder)


def _concerns(one: Subject, builder: Builder) -> bool:
    """Whether a subject has anything to say of a crawl, told without its wiring module."""
    if one.wire_where is None:
        return True
    options, usual = builder.options, type(builder.options)()
    own = found_at(one.options).__struct_fields__ if one.options else ()
    if any(getattr(options, name, None) != getattr(usual, name, None) for name in (*own, *one.wire_where)):
        return True
    used = {plan.use for plan in builder.wiring.components.values()}
    used |= {plan.use for plan in builder.wiring.providers.values()}
    return not used.isdisjoint((*one.components, *one.providers))


def _documents(builder: Builder) -> None:
    builder.wiring = with_protocols(with_documents(builder.wiring, builder.options))


def _header(builder: Builder) -> None:
    """The person's own fields in requests; those that look secret go to their sites alone."""
    options = builder.options
    if plain := identity.plain(options.header):
        builder.set("header", "http", {"header": plain})
    if found := identity.credentials(options.auth, options.header, builder.seeds, options.header_for):
        builder.set("auth" if options.auth else "header", "http", {"credentials": found})


def _cookie_file(builder: Builder) -> None:
    """The cookies that requests begin with. A crawl that goes on finds the file wherever it is started."""
    if not builder.options.cookie_file:
        return
    path = Path(builder.options.cookie_file).absolute()
    fill(CookieJar(), path, 0.0)  # what cannot be read is refused before anything is touched
    builder.set("cookie_file", "http", {"cookie_file": str(path)})


def _seeds(builder: Builder) -> None:
    if not builder.seeds:
        return
    seeds = normal_seeds(builder.wiring, builder.seeds)
    # Of many seeds, few differ before their paths, and splitting costs a tenth of reading.
    sites = dict.fromkeys(["/".join(seed.split("/", 3)[:3]) for seed in seeds])
    hosts = list(filter(None, dict.fromkeys([place_of_site(site_of(site)) for site in sites])))
    builder.set("seeds", "seeds", {"urls": seeds})
    builder.set_where_present("scope", {"seeds": seeds})
    if any(site.startswith("file:") for site in sites):
        roots = sorted({root_of(seed) for seed in seeds if seed.startswith("file:")})
        builder.set_where_present("file", {"roots": roots})
    builder.set_where_present("dns", {"seed_hosts": hosts})


def _identity(builder: Builder) -> None:
    """The user agent, and the token that robots.txt knows it by. A wiring that has one keeps it unless another is given."""
    options, providers = builder.options, builder.wiring.providers
    known = providers["http"].settings.get("user_agent") if "http" in providers else ""
    if known and not (options.user_agent or contact_of(options)):
        return
    agent = user_agent(options)
    builder.set_where_present("http", {"user_agent": agent})
    if "robots" in providers and providers["robots"].use in READING_GATES:
        builder.set_where_present("robots", {"agent": token_of(agent)})
    if token_of(agent) != ProcessSheet().agent:
        builder.set_where_present("process", {"agent": token_of(agent)})
    if "archive" in providers and providers["archive"].use == "warc":
        told = {"user_agent": agent, "contact": contact_of(options), "robots": options.robots}
        builder.set_where_present("archive", told)


def _permission(builder: Builder) -> None:
    """Off this machine a crawl needs a contact, and robots.txt unless its hosts are one's own (design question 15)."""
    options = builder.options
    named = contact_of(options) or options.user_agent
    if named and (options.robots == "obey" or options.i_own_these_hosts):
        builder.set_where_present("dns", {"only_loopback": False})


def _archive(builder: Builder) -> None:
    if builder.options.no_warc:
        raise UsageError("--archive names disks for an archive that --no-warc does not keep; leave one of the two out")
    disks = [Path(one).absolute() for one in builder.options.archive]
    if wrong := next((disk for disk in disks if disk.exists() and not disk.is_dir()), None):
        raise UsageError(f"--archive {wrong}: is a file; name a folder on another disk")
    builder.set("archive", "archive", {"disks": list(map(str, disks))})


#: Option -> what it does to units, beside its settings; in this order.
RULES: dict[str, Callable[[Builder], None]] = {
    "concurrency": _concurrency,
    "agents": _agents,
    "until": _until,
    "archive": _archive,
    "no_warc": lambda builder: builder.put("no_warc", "archive", "no-archive"),
    "strategy": _strategy,
    "robots": lambda builder: builder.put("robots", "robots", "ignore-robots"),
    "robots_cache": share_robots,
}

#: The steps that every crawl takes, after its options: they depend on several of them, or on none.
ALWAYS: tuple[Callable[[Builder], None], ...] = (
    *(_documents, _header, _cookie_file, _seeds, _identity, _permission),
    _subjects,
    put_hosts,
)


def normal_steps(words: Sequence[str]) -> list[str]:
    """The steps that normalise links, from the words of `--normalize`. Raises SettingError: there is no such word."""
    try:
        return list(chosen(words))
    except ValueError as error:
        raise SettingError(f"--normalize: {error}") from None


def normal_seeds(wiring: Wiring, seeds: Sequence[str]) -> list[str]:
    """Seeds in the normal form that links have, so that a link to a seed is known to be one."""
    plan = wiring.components.get("links")
    if plan is None or plan.use != "links":
        return list(seeds)
    return normaliser(build(LinksSheet, plan.settings)).of_each(seeds)


def _without_content_seen(wiring: Wiring) -> Wiring:
    if "content-seen" not in wiring.components:
        return wiring
    components = dict(wiring.components)
    ports = components.pop("content-seen").ports
    kept = {
        name: msgspec.structs.replace(
            plan, ports={role: ports["inbox"] if end == ports["outbox"] else end for role, end in plan.ports.items()}
        )
        for name, plan in components.items()
    }
    connectors = {name: plan for name, plan in wiring.connectors.items() if name != ports["outbox"]}
    used = provider_names([*kept.values(), *wiring.providers.values()])
    providers = {name: plan for name, plan in wiring.providers.items() if name in used}
    return msgspec.structs.replace(wiring, components=kept, connectors=connectors, providers=providers)


def provider_names(plans: Iterable[ComponentPlan | ProviderPlan]) -> set[str]:
    """The providers that the roles of some units name, whatever their form."""
    found: set[str] = set()
    for bound in (bound for plan in plans for bound in plan.providers.values()):
        for names in [bound] if isinstance(bound, str) else bound.values():
            found |= {names} if isinstance(names, str) else set(names)
    return found
