"""Options to wiring: a plain crawl is a wiring that its options filled in (MISSION C4).

One rule for every option: it sets one or more settings of named units. A wiring of the user's own takes the same options as
long as it has these units; one that lacks them says so.
"""

import datetime
import os
import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer._version import __version__
from gossamer.assembly import secrets
from gossamer.assembly.documents import with_documents
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.protocols import with_protocols
from gossamer.flow import wiring as wirings
from gossamer.flow.errors import SettingError, WiringError
from gossamer.flow.graph import ComponentNode, ProviderNode
from gossamer.flow.sheet import build
from gossamer.flow.wiring import Wiring
from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.normal import chosen
from gossamer.model.url import canonical, endpoint_of, host_of, is_machine, scheme_of
from gossamer.services.politeness.retries import WAITS
from gossamer.stages.fetch.file import root_of
from gossamer.stages.links.component import LinksSheet, normaliser
from gossamer.stages.process.component import ProcessSheet
from gossamer.stages.url_filter.expressions import by_gate

#: Option -> the settings that it sets, as (unit, setting). An option that is left at its default sets nothing.
SETTINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "scope": (("scope", "scope"),),
    "depth": (("commit", "depth"), ("frontier", "depth"), ("ledger", "depths")),
    "include": (("patterns", "include"),),
    "exclude": (("patterns", "exclude"),),
    "only": (("constraints", "only"),),
    "never": (("constraints", "never"),),
    "max_pages": (("frontier", "max_pages"),),
    "sitemaps": (("commit", "sitemaps"),),
    "max_pages_per_host": (("commit", "max_per_host"),),
    "max_time": (("frontier", "max_time"),),
    "total_time": (("frontier", "total_time"),),
    "max_bytes": (("frontier", "max_bytes"),),
    "max_page_size": (("http", "max_body"), ("ftp", "max_body"), ("gopher", "max_body"), ("file", "max_body")),
    "max_links": (("links", "max_links"),),
    "concurrency": (("frontier", "concurrency"),),
    "per_host": (("politeness", "per_host"),),
    "min_free_disk": (("frontier", "min_free_disk"),),
    "linger": (("frontier", "linger"),),
    "delay": (("politeness", "delay"),),
    "domain_delay": (("politeness", "domain_delay"),),
    "ip_delay": (("politeness", "ip_delay"),),
    "rate": (("politeness", "rate"),),
    "bandwidth": (("politeness", "bandwidth"),),
    "resolve": (("dns", "resolve"),),
    "allow_network": (("dns", "allow_networks"),),
    "cookies": (("http", "cookies"),),
    "proxy": (("http", "proxy"), ("frontier", "proxied")),
    "http2": (("http", "http2"),),
    "ca_file": (("http", "ca_file"),),
}

#: Settings that an option turns on by being given at all.
SWITCHES = frozenset({"depths", "proxied"})

#: Providers that keep large bodies on disk while they are used.
_SPOOLING = frozenset({"http", "ftp", "gopher", "file"})

#: Units that a wiring of a person's own may leave out: what an option says of them then says nothing.
_OPTIONAL = frozenset({"ftp", "gopher", "file"})

#: Where the shipped wirings lie, as files of the package.
WIRINGS = Path(__file__).parent / "wirings"


def shipped(name: str) -> Wiring:
    """A wiring that ships with the package.

    Raises:
        WiringError: there is none of that name; lists those that are.
    """
    known = sorted(path.stem for path in WIRINGS.glob("*.toml"))
    if name not in known:
        raise WiringError(f"no shipped wiring {name!r}; known: {', '.join(known)}")
    return wirings.parse((WIRINGS / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")


def find_wiring(name: str) -> Wiring:
    """A wiring by file name, or by the name of a shipped one."""
    if name.endswith(".toml") or "/" in name or Path(name).exists():
        return wirings.read(Path(name))
    return shipped(name)


def read_seeds(texts: Sequence[str], hostless: Container[str] = ()) -> tuple[str, ...]:
    """Canonical URLs of seeds, each once, in order.

    Args:
        texts: as a person wrote them.
        hostless: schemes that are served though their URLs name no host, beside `file`.

    Raises:
        UsageError: one of them is not a URL, or names no host where one is needed; says what would be right.
    """
    seeds: dict[str, None] = {}
    for text in texts:
        try:
            url = canonical(text.strip())
        except UnreadableUrl as error:
            raise UsageError(f"seed {text!r}: {error}{_likely(text.strip())}") from None
        if not is_machine(host_of(url)) and scheme_of(url) != "file" and scheme_of(url) not in hostless:
            raise UsageError(f"seed {text!r} names no host; write it as https://example.org/")
        seeds[url] = None
    return tuple(seeds)


def _likely(text: str) -> str:
    """What somebody probably meant who wrote this for a URL."""
    if not text or "://" in text:
        return ""
    path = Path(text)
    meant = path.resolve().as_uri() if path.is_absolute() or path.exists() else f"http://{text}"
    return f"; did you mean {meant}?"


def default_directory(seeds: Sequence[str], today: datetime.date) -> str:
    """`./crawl-HOST-DATE`, after the first seed."""
    host = "none"
    if seeds:
        host = host_of(seeds[0]) if is_machine(host_of(seeds[0])) else scheme_of(seeds[0])
    return f"crawl-{host}-{today.isoformat()}"


def user_agent(options: CrawlOptions) -> str:
    """The product token, the version, and whom to complain to (DESIGN 8)."""
    if options.user_agent:
        return options.user_agent
    contact = contact_of(options)
    return f"Gossamer/{__version__} (+{contact})" if contact else f"Gossamer/{__version__}"


#: A contact that a site owner can use: a web page, or a mail address with or without its scheme.
_CONTACT = re.compile(r"https?://[^\s/]+\S*|(?:mailto:)?[^\s@<>,;:]+@[^\s@<>,;:]+\.[^\s@<>,;:]+")


def contact_of(options: CrawlOptions) -> str:
    """From the option, or the environment (DESIGN 9.15).

    Raises:
        UsageError: it is neither a URL nor a mail address.
    """
    contact = options.contact or os.environ.get("GOSSAMER_CONTACT", "")
    if contact and not _CONTACT.fullmatch(contact):
        source = "--contact" if options.contact else "GOSSAMER_CONTACT"
        raise UsageError(f"{source} {contact!r}: give the URL of a page, or a mail address, as me@example.org")
    return contact


def compile_wiring(seeds: Sequence[str], options: CrawlOptions, base: Wiring | None = None) -> Wiring:
    """The wiring of a crawl: `base` (the shipped default) with seeds and options filled in.

    Raises:
        WiringError: an option that was given sets a unit that the wiring does not have.
    """
    wiring = base or shipped("default")
    plain = msgspec.structs.asdict(options)
    defaults = msgspec.structs.asdict(CrawlOptions())
    for option in SETTINGS:
        if plain[option] != defaults[option]:
            wiring = _with_option(wiring, option, plain[option])
    if plain["concurrency"] != defaults["concurrency"]:
        wiring = _with_workers(wiring, options.concurrency)
    wiring = with_protocols(with_documents(_with_filters(wiring, options), options))
    if options.no_warc:
        wiring = _without_archive(wiring)
    wiring = _with_header(wiring, seeds, options)
    if options.strategy != defaults["strategy"]:
        wiring = _with_strategy(wiring, options.strategy)
    if options.robots == "ignore":
        wiring = _without_robots(wiring)
    if options.retries != defaults["retries"]:
        wiring = _set(wiring, "retries", "politeness", {"retries": list(WAITS[: options.retries])})
    if seeds:
        wiring = _with_seeds(wiring, _normal_seeds(wiring, seeds))
    return _with_permission(_with_identity(wiring, options), options)


def _with_filters(wiring: Wiring, options: CrawlOptions) -> Wiring:
    """What of the links is folded, followed and cut, as far as an option is more than one setting."""
    if options.normalise:
        wiring = _set(wiring, "normalise", "links", {"normalise": _steps(options.normalise)})
    if options.noise != "drop":
        values = {"drop": False} if options.noise == "keep" else {"file": options.noise}
        wiring = _set(wiring, "noise", "noise", values)
    if options.filter:
        wiring = _set(wiring, "filter", "expressions", by_gate(options.filter))
    if options.traps == "report":
        wiring = _set(wiring, "traps", "traps", {"cut": False})
    return wiring


def _with_option(wiring: Wiring, option: str, given: Any) -> Wiring:
    for unit, setting in SETTINGS[option]:
        if unit in _OPTIONAL and not _has(wiring, unit):
            continue
        wiring = _set(wiring, option, unit, {setting: True if setting in SWITCHES else given})
    return wiring


def _with_header(wiring: Wiring, seeds: Sequence[str], options: CrawlOptions) -> Wiring:
    """A copy whose requests carry the person's own fields; those that prove who asks go to their sites alone."""
    if plain := secrets.plain(options.header):
        wiring = _set(wiring, "header", "http", {"header": plain})
    if found := secrets.credentials(options.auth, options.header, seeds):
        wiring = _set(wiring, "auth" if options.auth else "header", "http", {"credentials": found})
    return wiring


def _set(wiring: Wiring, option: str, unit: str, values: dict[str, Any]) -> Wiring:
    try:
        return wirings.with_settings(wiring, unit, values)
    except WiringError as error:
        raise WiringError(f"--{option.replace('_', '-')} sets unit {unit!r}, but {error}") from None


#: Options that come to more than the setting that they name, and can be changed while a crawl runs.
LIVE_OPTIONS = ("retries", "user_agent")


def live_option(
    option: str, value: str, units: Mapping[str, ComponentNode | ProviderNode]
) -> dict[str, dict[str, Any]]:
    """The settings that such an option comes to in a running crawl with these units; empty for any other option.

    Raises:
        SettingError: the value does not do.
        UsageError: likewise.
    """
    if option not in LIVE_OPTIONS:
        return {}
    options = build(CrawlOptions, {option: value})
    if option == "retries":
        return {"politeness": {"retries": list(WAITS[: options.retries])}}
    if not options.user_agent:
        raise UsageError("user-agent: give a product token, as Gossamer/1.0")
    agent, known = options.user_agent, getattr(units["robots"].sheet, "agent", "") if "robots" in units else ""
    if known and token_of(agent) != known:
        raise UsageError(
            f"user-agent: robots.txt was read for {known!r}, so its product token stays while the crawl runs; "
            "stop it, and give the other one to gossamer resume"
        )
    return {"http": {"user_agent": agent}}


def _steps(words: Sequence[str]) -> list[str]:
    try:
        return list(chosen(words))
    except ValueError as error:
        raise SettingError(f"--normalise: {error}") from None


def _normal_seeds(wiring: Wiring, seeds: Sequence[str]) -> list[str]:
    """Seeds in the normal form that links have, so that a link to a seed is known to be one."""
    plan = wiring.components.get("links")
    if plan is None or plan.use != "links":
        return list(seeds)
    normalise = normaliser(build(LinksSheet, plan.settings))
    return list(dict.fromkeys(normalise(seed) for seed in seeds))


def _has(wiring: Wiring, unit: str) -> bool:
    return unit in wiring.components or unit in wiring.providers


def _set_where_present(wiring: Wiring, unit: str, values: dict[str, Any]) -> Wiring:
    return wirings.with_settings(wiring, unit, values) if _has(wiring, unit) else wiring


def _with_seeds(wiring: Wiring, seeds: Sequence[str]) -> Wiring:
    hosts = sorted({f"{host}:{port}" for host, port in map(endpoint_of, seeds) if host})
    wiring = _set(wiring, "seeds", "seeds", {"urls": list(seeds)})
    wiring = _set_where_present(wiring, "scope", {"seeds": list(seeds)})
    if roots := sorted({root_of(seed) for seed in seeds if scheme_of(seed) == "file"}):
        wiring = _set_where_present(wiring, "file", {"roots": roots})
    return _set_where_present(wiring, "dns", {"seed_hosts": hosts})


def _with_identity(wiring: Wiring, options: CrawlOptions) -> Wiring:
    """The user agent, and the token that robots.txt knows it by. A wiring that has one keeps it unless another is given."""
    known = wiring.providers["http"].settings.get("user_agent") if "http" in wiring.providers else ""
    if known and not (options.user_agent or contact_of(options)):
        return wiring
    agent = user_agent(options)
    wiring = _set_where_present(wiring, "http", {"user_agent": agent})
    if "robots" in wiring.providers and wiring.providers["robots"].use == "robots":
        wiring = wirings.with_settings(wiring, "robots", {"agent": token_of(agent)})
    if "process" in wiring.components and token_of(agent) != ProcessSheet().agent:
        wiring = wirings.with_settings(wiring, "process", {"agent": token_of(agent)})
    if "archive" in wiring.providers and wiring.providers["archive"].use == "warc":
        told = {"user_agent": agent, "contact": contact_of(options), "robots": options.robots}
        wiring = wirings.with_settings(wiring, "archive", told)
    return wiring


def token_of(user_agent: str) -> str:
    """The product token of a user agent: what robots.txt names it by (RFC 9309, 2.2.1)."""
    return re.split(r"[/\s(]", user_agent.strip(), maxsplit=1)[0] or "Gossamer"


def _with_permission(wiring: Wiring, options: CrawlOptions) -> Wiring:
    """Off this machine a crawl needs a contact, and robots.txt unless its hosts are one's own (DESIGN 8, INTERFACE)."""
    named = contact_of(options) or options.user_agent
    obeys = options.robots == "obey" or options.i_own_these_hosts
    return _set_where_present(wiring, "dns", {"only_loopback": False}) if named and obeys else wiring


def _with_strategy(wiring: Wiring, strategy: str) -> Wiring:
    """Another traversal. A random walk may come where it was: neither URL-seen nor content-seen (seed 000, 2.1)."""
    if "traversal" not in wiring.providers:
        raise WiringError(f"--strategy replaces unit 'traversal', but {wiring.source} has none")
    providers = {**wiring.providers, "traversal": wirings.ProviderPlan(use=strategy)}
    wiring = msgspec.structs.replace(wiring, providers=providers)
    return _without_seen(wiring) if strategy == "random-walk" else wiring


def _without_seen(wiring: Wiring) -> Wiring:
    wiring = _set(wiring, "strategy", "commit", {"again": True})
    wiring = _set(wiring, "strategy", "url-seen", {"again": True})
    if "content-seen" not in wiring.components:
        return wiring
    components = dict(wiring.components)
    ports = components.pop("content-seen").ports
    kept = {
        name: msgspec.structs.replace(
            plan,
            ports={role: ports["inbox"] if end == ports["outbox"] else end for role, end in plan.ports.items()},
        )
        for name, plan in components.items()
    }
    connectors = {name: plan for name, plan in wiring.connectors.items() if name != ports["outbox"]}
    used = {name for plan in kept.values() for name in provider_names(plan.providers)}
    used |= {name for plan in wiring.providers.values() for name in provider_names(plan.providers)}
    providers = {name: plan for name, plan in wiring.providers.items() if name in used}
    return msgspec.structs.replace(wiring, components=kept, connectors=connectors, providers=providers)


def provider_names(roles: Mapping[str, Any]) -> set[str]:
    """The providers that bound roles name, whatever their form."""
    found: set[str] = set()
    for bound in roles.values():
        for names in [bound] if isinstance(bound, str) else bound.values():
            found |= {names} if isinstance(names, str) else set(names)
    return found


def _without_robots(wiring: Wiring) -> Wiring:
    if "robots" not in wiring.providers:
        raise WiringError(f"--robots replaces unit 'robots', but {wiring.source} has none")
    plan = wirings.ProviderPlan(use="ignore-robots")
    return msgspec.structs.replace(wiring, providers={**wiring.providers, "robots": plan})


def with_durability(wiring: Wiring) -> Wiring:
    """A copy whose archive and rows are on the disk before the ledger says so, where the ledger is to survive power cuts."""
    ledger = wiring.providers.get("ledger")
    if ledger is None or ledger.settings.get("durability") != "power":
        return wiring
    for unit in ("archive", "log"):
        if unit in wiring.providers and wiring.providers[unit].use in _SYNCING:
            wiring = wirings.with_settings(wiring, unit, {"sync": True})
    return wiring


def with_told_tls(wiring: Wiring) -> Wiring:
    """A copy whose archive tells where servers' certificates are not verified (FAULTS 98)."""
    archive = wiring.providers.get("archive")
    if archive is None or archive.use != "warc":
        return wiring
    modules = [plan for plan in wiring.providers.values() if plan.use == "http"]
    from gossamer.stores.warc_files import UNVERIFIED  # once it is known that there is such an archive

    told = UNVERIFIED if any(plan.settings.get("verify") is False for plan in modules) else ""
    if archive.settings.get("tls", "") == told:
        return wiring
    return wirings.with_settings(wiring, "archive", {"tls": told})


#: Stores that can wait for the disk, by what a wiring uses.
_SYNCING = frozenset({"warc", "tables", "json-log"})


def with_directory(wiring: Wiring, directory: str) -> Wiring:
    """A copy whose stores keep their files under `directory`."""
    for unit in ("ledger", "archive", "log", "frontier", "sieve"):
        if _has(wiring, unit) and not (unit == "archive" and wiring.providers[unit].use == "no-archive"):
            wiring = wirings.with_settings(wiring, unit, {"directory": directory})
    # Large bodies wait on the disk of the archive: the system's directory for temporary files may be memory.
    for unit, plan in wiring.providers.items():
        if plan.use in _SPOOLING:
            wiring = wirings.with_settings(wiring, unit, {"spool": directory})
    return wiring


def _with_workers(wiring: Wiring, workers: int) -> Wiring:
    """A worker for each request in flight: more would idle, fewer would make slots wait."""
    if "fetch" not in wiring.components:
        raise WiringError(f"--concurrency sets unit 'fetch', but {wiring.source} has none")
    plan = msgspec.structs.replace(wiring.components["fetch"], workers=workers)
    return msgspec.structs.replace(wiring, components={**wiring.components, "fetch": plan})


def _without_archive(wiring: Wiring) -> Wiring:
    if "archive" not in wiring.providers:
        raise WiringError(f"--no-warc replaces unit 'archive', but {wiring.source} has none")
    plan = wirings.ProviderPlan(use="no-archive")
    return msgspec.structs.replace(wiring, providers={**wiring.providers, "archive": plan})
