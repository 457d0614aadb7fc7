"""Options to wiring: a plain crawl is a wiring that its options filled in (MISSION C4).

One rule for every option: it sets one or more settings of named units. A wiring of the user's own takes the same options as
long as it has these units; one that lacks them says so.
"""

import datetime
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer._version import __version__
from gossamer.assembly.options import CrawlOptions
from gossamer.flow import wiring as wirings
from gossamer.flow.errors import WiringError
from gossamer.flow.wiring import Wiring
from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.url import canonical, endpoint_of, host_of, scheme_of
from gossamer.stages.url_filter.expressions import by_gate

#: Option -> the settings that it sets, as (unit, setting). An option that is left at its default sets nothing.
SETTINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "scope": (("scope", "scope"),),
    "depth": (("scope", "depth"),),
    "include": (("patterns", "include"),),
    "exclude": (("patterns", "exclude"),),
    "only": (("constraints", "only"),),
    "never": (("constraints", "never"),),
    "max_pages": (("frontier", "max_pages"),),
    "max_pages_per_host": (("frontier", "max_pages_per_host"),),
    "max_time": (("frontier", "max_time"),),
    "max_bytes": (("frontier", "max_bytes"),),
    "max_page_size": (("http", "max_body"),),
    "max_links": (("links", "max_links"),),
    "concurrency": (("frontier", "concurrency"),),
    "per_host": (("frontier", "per_host"),),
    "resolve": (("dns", "resolve"),),
    "allow_network": (("dns", "allow_networks"),),
    "header": (("http", "header"),),
}

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


def read_seeds(texts: Sequence[str]) -> tuple[str, ...]:
    """Canonical URLs of seeds, each once, in order.

    Raises:
        UsageError: one of them is not a URL, or of a scheme that no crawler fetches; says what would be right.
    """
    seeds: dict[str, None] = {}
    for text in texts:
        try:
            url = canonical(text.strip())
        except UnreadableUrl as error:
            hint = f"; did you mean http://{text}?" if text.strip() and "://" not in text else ""
            raise UsageError(f"seed {text!r}: {error}{hint}") from None
        if not host_of(url) and scheme_of(url) != "file":
            raise UsageError(f"seed {text!r} names no host; write it as https://example.org/")
        seeds[url] = None
    return tuple(seeds)


def default_directory(seeds: Sequence[str], today: datetime.date) -> str:
    """`./crawl-HOST-DATE`, after the first seed."""
    host = host_of(seeds[0]) if seeds else "none"
    return f"crawl-{host}-{today.isoformat()}"


def user_agent(options: CrawlOptions) -> str:
    """The product token, the version, and whom to complain to (DESIGN 8)."""
    if options.user_agent:
        return options.user_agent
    contact = contact_of(options)
    return f"Gossamer/{__version__} (+{contact})" if contact else f"Gossamer/{__version__}"


def contact_of(options: CrawlOptions) -> str:
    """From the option, or the environment (DESIGN 9.15)."""
    return options.contact or os.environ.get("GOSSAMER_CONTACT", "")


def compile_wiring(seeds: Sequence[str], options: CrawlOptions, base: Wiring | None = None) -> Wiring:
    """The wiring of a crawl: `base` (the shipped default) with seeds and options filled in.

    Raises:
        WiringError: an option that was given sets a unit that the wiring does not have.
    """
    wiring = base or shipped("default")
    plain = msgspec.structs.asdict(options)
    defaults = msgspec.structs.asdict(CrawlOptions())
    for option, targets in SETTINGS.items():
        if plain[option] != defaults[option]:
            for unit, setting in targets:
                wiring = _set(wiring, option, unit, {setting: plain[option]})
    if plain["concurrency"] != defaults["concurrency"]:
        wiring = _with_workers(wiring, options.concurrency)
    if options.filter:
        wiring = _set(wiring, "filter", "expressions", by_gate(options.filter))
    if options.no_warc:
        wiring = _without_archive(wiring)
    return _with_identity(_with_seeds(wiring, seeds), options) if seeds else _with_identity(wiring, options)


def _set(wiring: Wiring, option: str, unit: str, values: dict[str, Any]) -> Wiring:
    try:
        return wirings.with_settings(wiring, unit, values)
    except WiringError as error:
        raise WiringError(f"--{option.replace('_', '-')} sets unit {unit!r}, but {error}") from None


def _has(wiring: Wiring, unit: str) -> bool:
    return unit in wiring.components or unit in wiring.providers


def _set_where_present(wiring: Wiring, unit: str, values: dict[str, Any]) -> Wiring:
    return wirings.with_settings(wiring, unit, values) if _has(wiring, unit) else wiring


def _with_seeds(wiring: Wiring, seeds: Sequence[str]) -> Wiring:
    hosts = sorted({f"{host}:{port}" for host, port in map(endpoint_of, seeds) if host})
    wiring = _set(wiring, "seeds", "seeds", {"urls": list(seeds)})
    wiring = _set_where_present(wiring, "scope", {"seeds": list(seeds)})
    return _set_where_present(wiring, "dns", {"seed_hosts": hosts})


def _with_identity(wiring: Wiring, options: CrawlOptions) -> Wiring:
    agent = user_agent(options)
    wiring = _set_where_present(wiring, "http", {"user_agent": agent})
    if "archive" in wiring.providers and wiring.providers["archive"].use == "warc":
        wiring = wirings.with_settings(wiring, "archive", {"user_agent": agent, "contact": contact_of(options)})
    return wiring


def with_directory(wiring: Wiring, directory: str) -> Wiring:
    """A copy whose stores keep their files under `directory`."""
    for unit in ("archive", "log"):
        if unit in wiring.providers and wiring.providers[unit].use not in ("no-archive",):
            wiring = wirings.with_settings(wiring, unit, {"directory": directory})
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
