"""Parts that are added to a wiring: a processor of structured data, a stage that compares texts, and subscribers of records.

Place in the flow: :mod:`compiling` calls :func:`with_documents` for options that add a part. :mod:`gossamer.api` subscribes to
committed visits (:func:`with_subscribers`), and so does code that adds a consumer of records; any number of subscribers stand in
one wiring.
"""

from collections.abc import Iterable, Mapping

import msgspec

from gossamer.crawls.builder import more_tables, set_by_option
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import WiringError
from gossamer.engine.wiring import MAIN_PROCESS, ComponentPlan, ConnectorPlan, ProviderPlan, Wiring
from gossamer.values.media_type import HTML_TYPES


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
