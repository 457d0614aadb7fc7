"""Writing into a wiring: the builder that options fill in, what units have to know of the crawl and of each other, and parts that
are added.

Place in the flow: each rule of :mod:`compiling` changes a :class:`Builder`. :mod:`crawl` says here where the directory is, what
must survive and what is to be told, before the wiring is planned. Served schemes are declared once, by the roles of the fetch
stage; the other stages are told what follows from them, so that a new protocol module changes nothing else (row M1).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import option_name
from gossamer.engine.subjects import found_at, installed
from gossamer.engine.wiring import MAIN_PROCESS, ComponentPlan, ConnectorPlan, ProviderPlan, Wiring, with_settings
from gossamer.storage.tables.log import TableLogSheet
from gossamer.values.media_type import HTML_TYPES
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
            self.wiring = with_settings(self.wiring, unit, dict(values))

    def put(self, option: str, unit: str, use: str) -> None:
        """Put another provider, with its own defaults, into the place of one. Raises WiringError: the wiring has no such
        provider; names the option."""
        if unit not in self.wiring.providers:
            raise WiringError(f"{option_name(option)} replaces unit {unit!r}, but {self.wiring.source} has none")
        providers = {**self.wiring.providers, unit: ProviderPlan(use=use)}
        self.wiring = msgspec.structs.replace(self.wiring, providers=providers)

    def add_provider(self, name: str, use: str, settings: Mapping[str, Any], providers: Mapping[str, Any] = {}) -> None:
        """Add a provider; one that an earlier run of the crawl has added keeps its place and gets these settings. Raises
        WiringError: something else bears the name."""
        known = self.wiring.providers.get(name)
        if name in self.wiring.components or (known is not None and known.use != use):
            raise WiringError(
                f"{self.wiring.source}: {name!r} is needed for a provider that uses {use!r}; rename yours"
            )
        plan = ProviderPlan(use=use, providers=dict(providers), settings=dict(settings))
        self.wiring = msgspec.structs.replace(self.wiring, providers={**self.wiring.providers, name: plan})

    def add_table(self, table: str) -> None:
        """Have the row log keep one more table; a wiring without a row log keeps none. Raises WiringError: the row log of the
        wiring knows no tables."""
        if "log" in self.wiring.providers:
            self.wiring = with_settings(self.wiring, "log", more_tables(self.wiring, table))

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
        return with_settings(wiring, unit, dict(values))
    except WiringError as error:
        raise WiringError(f"{option_name(option)} sets unit {unit!r}, but {error}") from None


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
            wiring = with_settings(wiring, unit, {"sync": True})
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
    return with_settings(wiring, "archive", {"tls": told})


def with_directory(wiring: Wiring, directory: str) -> Wiring:
    """A copy whose stores keep their files under `directory`."""
    for unit in ("ledger", "archive", "log", "frontier", "sieve", "process"):
        if (unit in wiring.providers or unit in wiring.components) and not (
            unit == "archive" and wiring.providers[unit].use == "no-archive"
        ):
            wiring = with_settings(wiring, unit, {"directory": directory})
    # Large bodies wait on the disk of the archive: the system's directory for temporary files may be memory.
    for unit, plan in wiring.providers.items():
        if plan.use in _SPOOLING:
            wiring = with_settings(wiring, unit, {"spool": directory})
        if plan.use in _FILED or _keeps_files(plan.use):
            wiring = with_settings(wiring, unit, {"directory": directory})
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


# Parts that are added to a wiring: a processor of structured data, a stage that compares texts, and subscribers of records, as
# :mod:`gossamer.api` and others have them; any number of subscribers stand in one wiring.


def with_documents(wiring: Wiring, options: CrawlOptions) -> Wiring:
    """A copy whose process stage and the stages behind it do as the options say. Raises WiringError: an option that
    was given needs a unit that the wiring does not have."""
    if options.rdf:
        wiring = with_structured_data(wiring)
    compares = options.near_duplicates
    if compares == "auto":
        compares = "report" if options.analysis == "full" else "off"
    if compares == "off":
        return wiring
    wiring = set_by_option(wiring, "near-duplicates", "process", {"details": "full"})  # fingerprints
    return with_near_duplicates(wiring, skip=compares == "skip")


def with_structured_data(wiring: Wiring) -> Wiring:
    """A copy whose process stage reads the structured data of pages, and whose log keeps the triples. Raises WiringError: the
    wiring has no component `process`, or no provider `log`."""
    name, process = "structured-data", wiring.components.get("process")
    if process is None:
        raise WiringError(f"--rdf needs unit 'process', but {wiring.source} has none")
    bound = process.providers.get("processors", {})
    if not isinstance(bound, Mapping):
        raise WiringError(
            f"--rdf needs the processors of unit 'process' by media type, but {wiring.source} names one for all"
        )
    processors = dict(bound)
    for mime in sorted(HTML_TYPES):
        before = processors.get(mime, [])
        names = [before] if isinstance(before, str) else list(before)
        processors[mime] = names if name in names else [*names, name]
    process = msgspec.structs.replace(process, providers={**process.providers, "processors": processors})
    wiring = msgspec.structs.replace(
        wiring,
        components={**wiring.components, "process": process},
        providers={name: ProviderPlan(use=name), **wiring.providers},
    )
    return set_by_option(wiring, "rdf", "log", more_tables(wiring, "triples"))


def with_near_duplicates(wiring: Wiring, *, skip: bool) -> Wiring:
    """A copy in which every page passes a comparison of fingerprints behind the process stage, in the process that has the
    ledger. Raises WiringError: the wiring has no component `process` with an outbox."""
    if "near-duplicates" in wiring.components:
        return set_by_option(wiring, "near-duplicates", "near-duplicates", {"skip": skip})
    stage = ComponentPlan(
        use="near-duplicates", providers={"index": "fingerprints"}, settings={"skip": True} if skip else {}
    )
    wiring, is_home = behind_process(wiring, "near-duplicates", "compared", stage)
    is_kept = "ledger" in wiring.providers and is_home
    index = (
        ProviderPlan("ledger-fingerprints", {"ledger": "ledger"}) if is_kept else ProviderPlan("memory-fingerprints")
    )
    return msgspec.structs.replace(wiring, providers={**wiring.providers, "fingerprints": index})


def behind_process(wiring: Wiring, name: str, outbox: str, stage: ComponentPlan) -> tuple[Wiring, bool]:
    """A copy with one more stage behind the process stage, and whether that stands in the main process.

    Args:
        wiring: has no stage of that name.
        name: what the stage is called, and the option that asks for it.
        outbox: what the connector behind it is called.
        stage: its use, providers and settings.

    Raises:
        WiringError: the wiring has no component `process` with an outbox.
    """
    process = wiring.components.get("process")
    if process is None or "outbox" not in process.ports:
        raise WiringError(f"--{name} needs unit 'process', but {wiring.source} has none")
    taker = _first_at_home(wiring, process)
    before = wiring.components[taker].ports["inbox"] if taker else process.ports["outbox"]
    components = dict(wiring.components)
    for other, plan in wiring.components.items():
        if plan.ports.get("inbox") == before:
            ports = {role: outbox if end == before else end for role, end in plan.ports.items()}
            components[other] = msgspec.structs.replace(plan, ports=ports)
    components[name] = msgspec.structs.replace(
        stage,
        ports={"inbox": before, "outbox": outbox},
        workers=process.workers,
        process=MAIN_PROCESS if taker else process.process,
    )
    connectors = {**wiring.connectors, outbox: ConnectorPlan(address="fused:")}
    return msgspec.structs.replace(wiring, components=components, connectors=connectors), bool(taker)


def _first_at_home(wiring: Wiring, plan: ComponentPlan) -> str:
    """The first stage behind this one that stands in the main process; empty where there is none."""
    by_inbox = {other.ports["inbox"]: name for name, other in wiring.components.items() if "inbox" in other.ports}
    for _ in wiring.components:
        taker = by_inbox.get(plan.ports.get("outbox", ""), "")
        if not taker or wiring.components[taker].process == MAIN_PROCESS:
            return taker
        plan = wiring.components[taker]
    return ""


def with_subscriber(wiring: Wiring, name: str, use: str) -> Wiring:
    """A copy of the wiring in which one more component gets every record; the others get them as before.

    Args:
        wiring: has a component that uses `commit`.
        name: of the new component; nothing in the wiring has it.
        use: its name in the catalog; it takes records at a port `records`.

    Raises:
        WiringError: the wiring has no commit, or something bears the name.
    """
    commit = next((name for name, plan in wiring.components.items() if plan.use == "commit"), "")
    arrow = wiring.components[commit].ports.get("records", "") if commit else ""
    if not arrow:
        raise WiringError(f"{wiring.source}: no component that uses 'commit' sends records")
    before, copied, copier = _parts(name)
    if taken := {name, copier, before, copied} & {*wiring.components, *wiring.connectors}:
        raise WiringError(f"{wiring.source}: {', '.join(sorted(taken))} is in the wiring already; choose another name")
    components = dict(wiring.components)
    plan = components[commit]
    components[commit] = msgspec.structs.replace(plan, ports={**plan.ports, "records": before})
    components[copier] = ComponentPlan(
        use="copy-records", ports={"inbox": before, "outbox": arrow, "copy": copied}, process=plan.process
    )
    components[name] = ComponentPlan(use=use, ports={"records": copied}, process=plan.process)
    connectors = {**wiring.connectors, before: ConnectorPlan(), copied: ConnectorPlan()}
    return msgspec.structs.replace(wiring, components=components, connectors=connectors)


def with_subscribers(wiring: Wiring, names: Iterable[str]) -> Wiring:
    for name in names:
        wiring = with_subscriber(wiring, name, name)
    return wiring


def without_subscribers(wiring: Wiring, names: Iterable[str]) -> Wiring:
    for name in reversed(tuple(names)):
        components, connectors = dict(wiring.components), dict(wiring.connectors)
        before, copied, copier = _parts(name)
        copying = components.pop(copier)
        del components[name], connectors[before], connectors[copied]
        for other, plan in components.items():
            if plan.ports.get("records") == before:
                ports = {**plan.ports, "records": copying.ports["outbox"]}
                components[other] = msgspec.structs.replace(plan, ports=ports)
        wiring = msgspec.structs.replace(wiring, components=components, connectors=connectors)
    return wiring


def _parts(name: str) -> tuple[str, str, str]:
    return f"{name}-before", f"{name}-records", f"{name}-copy"
