"""The part of a crawl's wiring that is run again over its archive: the stages between fetch and commit, cut at both ends.

Place in the flow: :mod:`gossamer.analysis.reprocess` plans this wiring, with a producer of archived visits before it and a consumer
of rows behind.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gossamer.engine.catalog import Catalog
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import nearest
from gossamer.engine.wiring import MAIN_PROCESS, ComponentPlan, ConnectorPlan, ProviderPlan, Wiring
from gossamer.values.errors import UsageError
from gossamer.values.visit import HTML_TYPES

#: Stages that remember other pages, by what a wiring uses: their answers of that time are in the tables.
REMEMBERING = frozenset({"content-seen", "url-seen"})

#: Fingerprints that a run over the archive compares at the most, 330 bytes each in memory: the ledger belongs to the crawl.
FINGERPRINTS = 1_000_000

#: The provider that says of an answer whether it was the last of its page, by its name in the catalog.
RULINGS = "archived-rulings"


def between(wiring: Wiring) -> Wiring:
    """The stages between fetch and commit, with the archive before them and rows behind.

    Raises:
        WiringError: there are none.
    """
    chain = _chain(wiring)
    if not chain:
        raise WiringError(f"{wiring.source}: no stage stands between a component that uses 'fetch' and 'commit'")
    components = {"replay": ComponentPlan(use="archive-visits", ports={"visits": "stage-0"})}
    for number, name in enumerate(chain):
        ports = {"inbox": f"stage-{number}", "outbox": f"stage-{number + 1}"}
        components[name] = msgspec.structs.replace(wiring.components[name], ports=ports, process=MAIN_PROCESS)
    components["rows"] = ComponentPlan(use="visit-rows", ports={"visits": f"stage-{len(chain)}"})
    connectors = {f"stage-{number}": ConnectorPlan(address="fused:") for number in range(len(chain) + 1)}
    connectors["stage-0"] = ConnectorPlan()
    providers: dict[str, ProviderPlan] = {}
    for name in chain:
        _take(wiring, wiring.components[name].providers, providers)
    return Wiring(providers, connectors, components, "Stages over a stored archive", wiring.source)


def _chain(wiring: Wiring) -> list[str]:
    """The stages from fetch to commit in data order, without those that remember other pages."""
    by_inbox = {plan.ports.get("inbox"): name for name, plan in wiring.components.items()}
    connector = next((p.ports.get("visits") for p in wiring.components.values() if p.use == "fetch"), None)
    chain: list[str] = []
    while connector is not None and (name := by_inbox.get(connector)) is not None:
        stage = wiring.components[name]
        if stage.use == "commit" or name in chain:
            break
        if stage.use not in REMEMBERING:
            chain.append(name)
        connector = stage.ports.get("outbox")
    return chain


def _take(wiring: Wiring, roles: Mapping[str, Any], taken: dict[str, ProviderPlan]) -> None:
    """Providers that roles name, and those that these use."""
    for bound in roles.values():
        for names in [bound] if isinstance(bound, str) else bound.values():
            for name in [names] if isinstance(names, str) else names:
                if name in wiring.providers and name not in taken:
                    taken[name] = _at_rest(wiring.providers[name])
                    _take(wiring, taken[name].providers, taken)


def _at_rest(plan: ProviderPlan) -> ProviderPlan:
    """The stand-in for a provider while nothing is fetched and the ledger belongs to the crawl; most stand for themselves."""
    if plan.use == "politeness":
        return ProviderPlan(RULINGS)
    if plan.use != "ledger-fingerprints":
        return plan
    capacity = min(FINGERPRINTS, int(plan.settings.get("capacity", FINGERPRINTS)))
    return ProviderPlan("memory-fingerprints", settings={"capacity": capacity})


def without_handlers(wiring: Wiring) -> Wiring:
    """The wiring of a crawl with a spider as it would be without one."""
    components = {
        name: msgspec.structs.replace(
            plan, use="process", providers={role: one for role, one in plan.providers.items() if role != "handlers"}
        )
        if plan.use == "handling-process"
        else plan
        for name, plan in wiring.components.items()
    }
    return msgspec.structs.replace(wiring, components=components)


def with_processors(wiring: Wiring, wanted: Sequence[str], catalog: Catalog) -> Wiring:
    """The wiring with these processors alone; all of its own where none is named.

    Raises:
        UsageError: neither the wiring nor the catalog has one of this name.
    """
    stage = wiring.components.get("process")
    if not wanted or stage is None:
        return wiring
    bound = stage.providers.get("processors", {})
    table = _by_mime(bound)
    chosen: dict[str, list[str]] = {}
    providers = dict(wiring.providers)
    for text in wanted:
        mime, _, name = text.rpartition("=")
        mimes = [mime] if mime else [one for one, names in table.items() if name in names] or sorted(HTML_TYPES)
        if name not in providers:
            if name not in catalog.names("providers"):
                known = sorted({*catalog.names("providers"), *(n for names in table.values() for n in names)})
                raise UsageError(f"there is no processor {name!r}{nearest(name, known)}")
            providers[name] = ProviderPlan(use=name)
        for one in mimes:
            chosen.setdefault(one, []).append(name)
    settings = dict(stage.settings)
    if "isolated" in settings:
        here = {name for names in chosen.values() for name in names}
        settings["isolated"] = [name for name in settings["isolated"] if name in here]
    stage = msgspec.structs.replace(stage, providers={**stage.providers, "processors": chosen}, settings=settings)
    return msgspec.structs.replace(wiring, providers=providers, components={**wiring.components, "process": stage})


def _by_mime(bound: str | Mapping[str, str | list[str]]) -> dict[str, list[str]]:
    """MIME type -> processors, as a wiring binds them."""
    if isinstance(bound, str):
        return {}
    return {mime: [names] if isinstance(names, str) else names for mime, names in bound.items()}
