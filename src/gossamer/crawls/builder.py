"""Writing into a wiring: the builder that options fill in, and what units have to know of the crawl and of each other.

Place in the flow: each rule of :mod:`compiling` changes a :class:`Builder`. :mod:`crawl` says here where the directory is, what
must survive and what is to be told, before the wiring is planned. Served schemes are declared once, by the roles of the fetch
stage; the other stages are told what follows from them, so that a new protocol module changes nothing else (row M1).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gossamer.crawls.options import CrawlOptions
from gossamer.engine import wiring as wirings
from gossamer.engine.errors import WiringError
from gossamer.engine.subjects import found_at, installed
from gossamer.engine.wiring import Wiring, with_settings
from gossamer.storage.tables.log import TableLogSheet
from gossamer.values.url import WITH_AUTHORITY


class Builder:
    """A wiring that options fill in, one after the other."""

    def __init__(self, wiring: Wiring, seeds: Sequence[str], options: CrawlOptions) -> None:
        self.wiring = wiring
        self.seeds = seeds
        self.options = options

    def has(self, unit: str) -> bool:
        return unit in self.wiring.components or unit in self.wiring.providers

    def set(self, option: str, unit: str, values: Mapping[str, Any]) -> None:
        """Change settings of a unit. Raises as :func:`set_by_option`."""
        self.wiring = set_by_option(self.wiring, option, unit, values)

    def set_where_present(self, unit: str, values: Mapping[str, Any]) -> None:
        """Change settings of a unit that a wiring may do without."""
        if self.has(unit):
            self.wiring = wirings.with_settings(self.wiring, unit, dict(values))

    def put(self, option: str, unit: str, use: str) -> None:
        """Put another provider, with its own defaults, into the place of one. Raises WiringError: the wiring has no such
        provider; names the option."""
        if unit not in self.wiring.providers:
            raise WiringError(f"--{option.replace('_', '-')} replaces unit {unit!r}, but {self.wiring.source} has none")
        providers = {**self.wiring.providers, unit: wirings.ProviderPlan(use=use)}
        self.wiring = msgspec.structs.replace(self.wiring, providers=providers)

    def add_provider(self, name: str, use: str, settings: Mapping[str, Any], providers: Mapping[str, Any] = {}) -> None:
        """Add a provider; one that an earlier run of the crawl has added keeps its place and gets these settings. Raises
        WiringError: something else bears the name."""
        known = self.wiring.providers.get(name)
        if name in self.wiring.components or (known is not None and known.use != use):
            raise WiringError(
                f"{self.wiring.source}: {name!r} is needed for a provider that uses {use!r}; rename yours"
            )
        plan = wirings.ProviderPlan(use=use, providers=dict(providers), settings=dict(settings))
        self.wiring = msgspec.structs.replace(self.wiring, providers={**self.wiring.providers, name: plan})

    def add_table(self, table: str) -> None:
        """Have the row log keep one more table; a wiring without a row log keeps none. Raises WiringError: the row log of the
        wiring knows no tables."""
        if "log" in self.wiring.providers:
            self.wiring = wirings.with_settings(self.wiring, "log", more_tables(self.wiring, table))

    def bind(self, unit: str, **roles: Any) -> None:
        """Bind providers to roles of a component, in the place of those that are bound."""
        plan = self.wiring.components[unit]
        plan = msgspec.structs.replace(plan, providers={**plan.providers, **roles})
        self.wiring = msgspec.structs.replace(self.wiring, components={**self.wiring.components, unit: plan})

    def bind_also(self, unit: str, role: str, key: str, provider: str) -> None:
        """Bind one more provider to a role that takes many, behind those that are bound under the key. Raises WiringError: the
        wiring has no such unit."""
        for table in ("components", "providers"):
            units = getattr(self.wiring, table)
            if unit in units:
                bound = dict(units[unit].providers.get(role, {}))
                names = [bound[key]] if isinstance(bound.get(key), str) else list(bound.get(key, ()))
                bound[key] = names if provider in names else [*names, provider]
                plan = msgspec.structs.replace(units[unit], providers={**units[unit].providers, role: bound})
                self.wiring = msgspec.structs.replace(self.wiring, **{table: {**units, unit: plan}})
                return
        raise WiringError(f"{self.wiring.source}: there is no unit {unit!r} for the role {role!r} of {provider!r}")


def set_by_option(wiring: Wiring, option: str, unit: str, values: Mapping[str, Any]) -> Wiring:
    """A copy with changed settings of a unit. Raises WiringError: the wiring has no such unit; names the option."""
    try:
        return wirings.with_settings(wiring, unit, dict(values))
    except WiringError as error:
        raise WiringError(f"--{option.replace('_', '-')} sets unit {unit!r}, but {error}") from None


def more_tables(wiring: Wiring, table: str) -> dict[str, Any]:
    """The setting of the row log that has it keep one more table."""
    log = wiring.providers.get("log")
    tables = TableLogSheet().tables if log is None else log.settings.get("tables", TableLogSheet().tables)
    return {"tables": [*dict.fromkeys((*tables, table))]}


#: Stores that can wait for the disk, by what a wiring uses.
_SYNCING = frozenset({"warc", "tables", "json-log"})

#: Providers that have to do with files in the crawl directory, whatever they are called.
_FILED = frozenset({"http", "url-trie", "bloom-seen", "compared-texts", "file-outbox", "store-publisher", "wants"})

#: Providers that keep large bodies on disk while they are used.
_SPOOLING = frozenset({"http", "ftp", "gopher", "file"})


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
    """A copy whose archive tells where servers' certificates are not verified (fault 98)."""
    archive = wiring.providers.get("archive")
    if archive is None or archive.use != "warc":
        return wiring
    modules = [plan for plan in wiring.providers.values() if plan.use == "http"]
    from gossamer.storage.archive.warc import UNVERIFIED  # once it is known that there is such an archive

    told = UNVERIFIED if any(plan.settings.get("verify") is False for plan in modules) else ""
    if archive.settings.get("tls", "") == told:
        return wiring
    return wirings.with_settings(wiring, "archive", {"tls": told})


def with_directory(wiring: Wiring, directory: str) -> Wiring:
    """A copy whose stores keep their files under `directory`."""
    for unit in ("ledger", "archive", "log", "frontier", "sieve", "process"):
        if (unit in wiring.providers or unit in wiring.components) and not (
            unit == "archive" and wiring.providers[unit].use == "no-archive"
        ):
            wiring = wirings.with_settings(wiring, unit, {"directory": directory})
    # Large bodies wait on the disk of the archive: the system's directory for temporary files may be memory.
    for unit, plan in wiring.providers.items():
        if plan.use in _SPOOLING:
            wiring = wirings.with_settings(wiring, unit, {"spool": directory})
        if plan.use in _FILED or _keeps_files(plan.use):
            wiring = wirings.with_settings(wiring, unit, {"directory": directory})
    return wiring


def _keeps_files(use: str) -> bool:
    """Whether a provider of an installed subject has a setting for the crawl directory."""
    places = (place for one in installed() if (place := one.providers.get(use)))
    return any("directory" in found_at(place).sheet_type.__struct_fields__ for place in places)


# Protocol modules of a wiring: the links that are kept though they name no host, and the names that are not looked up.


def served(wiring: Wiring) -> dict[str, str]:
    """Scheme -> the provider that fetches its URLs. Raises WiringError: a scheme has several, so that no URL says which of them
    it is for."""
    found: dict[str, str] = {}
    for component, plan in wiring.components.items():
        protocols = plan.providers.get("protocols", {})
        for scheme, bound in protocols.items() if isinstance(protocols, Mapping) else ():
            names = [bound] if isinstance(bound, str) else list(bound)
            if len(names) > 1:
                told = f"has {len(names)} modules ({', '.join(names)}); name one"
                raise WiringError(f"component {component!r}: scheme {scheme!r} {told}")
            found[scheme.lower()] = next(iter(names), "")
    return found


def hostless(wiring: Wiring | None) -> frozenset[str]:
    """Schemes whose URLs need not name a host, as `echo:x`: their module judges what it is given.

    `wiring`: None for the shipped ones, which serve no such scheme.
    """
    return frozenset() if wiring is None else frozenset(served(wiring)) - WITH_AUTHORITY


def unresolved(wiring: Wiring) -> frozenset[str]:
    """Schemes whose names are those of no machine: a module without a resolver connects to none."""
    return frozenset(
        scheme
        for scheme, name in served(wiring).items()
        if scheme not in WITH_AUTHORITY
        and name in wiring.providers
        and "resolver" not in wiring.providers[name].providers
    )


def with_protocols(wiring: Wiring) -> Wiring:
    """A copy whose stages know the schemes that only this wiring serves, beside those that a person has set."""
    known = {"links": {"hostless": hostless(wiring)}, "frontier": {"unresolved": unresolved(wiring)}}
    for name, plan in wiring.components.items():
        for setting, schemes in known.get(plan.use, {}).items():
            if schemes:
                wiring = with_settings(wiring, name, {setting: sorted({*schemes, *plan.settings.get(setting, ())})})
    return wiring
