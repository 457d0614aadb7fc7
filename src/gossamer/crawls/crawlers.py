"""Several crawlers on one queue and one URL cache: the wiring of `--crawlers`, and the way back from it.

Place in the flow: options compile to the wiring of one process, which is divided here at last. The main process keeps queue,
URL cache and everything else that the crawl must not forget; each crawler is a process that fetches and reads pages (Ridgway
2010, section 4.1). Between them stand the parts of :mod:`gossamer.crawls.leases`. A crawl that goes on is gathered into one
process first, so that options find its units by their names.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from gossamer.crawls.compiling import compile_wiring, provider_names
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.processes import HINTS, with_other_names
from gossamer.engine.wiring import MAIN_PROCESS, ComponentPlan, ConnectorPlan, ProviderPlan, Wiring, with_settings
from gossamer.frontier.limits import FrontierSheet
from gossamer.values.errors import UsageError

P = TypeVar("P")

#: The word between the name of a unit and the number of the crawler that has it; also the names of their processes.
CRAWLER = "crawler"

#: Stages that a crawler takes with it, as far as they follow each other from the fetch. They need nothing of the ledger but a hint.
_LEAVING = frozenset({"content-seen", "process", "links", "filter"})

#: The keeper's part of a lease, and the crawler's.
_LEASE, _TAKE = "lease-urls", "take-leases"

#: The names of these two, without the crawler.
_OWN = ("lease", "take")

#: Modules of protocols that remember who has logged in, for the whole crawl.
_WITH_MEMORY = frozenset({"log-ins", "sessions"})

#: The connector by which URLs come back to the frontier.
_RETURNED = "returned"


def crawler_name(number: int) -> str:
    """The process of the crawler with this number, counted from 1; also the end of its units' names."""
    return f"{CRAWLER}-{number}"


def crawlers_of(wiring: Wiring) -> int:
    """How many crawlers share its queue; 0 where it is not divided so."""
    return sum(plan.use == _LEASE for plan in wiring.components.values())


def leases_of(wiring: Wiring) -> int:
    return sum(plan.settings["slots"] for plan in wiring.components.values() if plan.use == _LEASE)


def compile_with_crawlers(
    seeds: Sequence[str],
    options: CrawlOptions,
    base: Wiring | None = None,
    settings: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Wiring:
    """The wiring of a crawl, with as many crawlers as its options or its own wiring say.

    Args:
        base: what they are filled into: the shipped default, a wiring of a person's own, or the one that a crawl goes on with.
        settings: of units. One that each crawler has is named without the crawler, as `lease`.

    Raises:
        UsageError: the crawl cannot be shared so.
        WiringError: an option or a setting is of a unit that the wiring does not have.
    """
    known = 0 if base is None else crawlers_of(base)
    number = known if options.crawlers is None else options.crawlers
    if number and options.is_divided:
        raise UsageError(
            "crawlers share one queue, and agents have one each; "
            f"leave out {' and '.join(options.dividing)}, or choose --crawlers 0"
        )
    compiled = compile_wiring(seeds, options, None if base is None else gathered(base))
    first = [f"{unit}-{crawler_name(1)}" for unit in _OWN]
    before = {name: base.components[name].settings for name in first if base is not None and name in base.components}
    later = {unit: values for unit, values in settings.items() if number and unit in _OWN}
    for unit, values in settings.items():
        if unit not in later:
            compiled = with_settings(compiled, unit, dict(values))
    if not number:
        return compiled
    own = {unit: {**before.get(f"{unit}-{crawler_name(1)}", {}), **later.get(unit, {})} for unit in _OWN}
    return with_crawlers(compiled, number, own)


def copies_of(units: Mapping[str, Any]) -> dict[str, list[str]]:
    """The units that each crawler has one of: by the name that they share, all their names."""
    found: dict[str, list[str]] = {}
    for name in units:
        shared, dash, number = name.rpartition(f"-{CRAWLER}-")
        if dash and number.isdecimal():
            found.setdefault(shared, []).append(name)
    return found


def with_crawlers(wiring: Wiring, number: int, settings: Mapping[str, Mapping[str, Any]]) -> Wiring:
    """The wiring in which so many crawlers share queue and URL cache; `settings` are those of :data:`_OWN`. Raises UsageError:
    what the crawl needs cannot be shared; WiringError: the wiring has not one fetch and one frontier."""
    frontier, fetch = (wiring.only(use, "--crawlers needs") for use in ("frontier", "fetch"))
    # Refuse what would have to be in the memory of one process.
    for name in provider_names([wiring.components[fetch]]):
        plan = wiring.providers[name]
        if plan.settings.get("cookies", "off") != "off":
            raise UsageError("--crawlers: cookies are in the memory of one process; leave out --cookies, or --crawlers")
        if plan.use in _WITH_MEMORY:
            raise UsageError("--crawlers: the log-ins are in the memory of one process; leave out --crawlers")
    if any(plan.use == "random-walk" for plan in wiring.providers.values()):
        raise UsageError("--crawlers: walks return to pages that are on lease; choose another --strategy")
    leaving = _leaving(wiring, fetch)
    first, last = wiring.components[fetch], wiring.components[leaving[-1]]
    cut = _Cut(
        leaving,
        first.ports["tasks"],
        first.ports["answers"],
        last.ports["visits" if leaving[-1] == fetch else "outbox"],
        -(-first.workers // number),
    )
    inner = cut.inner(wiring)
    components = {name: plan for name, plan in wiring.components.items() if name not in leaving}
    # Visits that never were at a crawler, as those of blocked hosts, come in behind the stages that left.
    ports = {role: cut.outlet if arrow in inner else arrow for role, arrow in components[frontier].ports.items()}
    ports["returned"] = _RETURNED
    components[frontier] = msgspec.structs.replace(components[frontier], ports=ports)
    made = msgspec.structs.replace(
        wiring,
        components=components,
        connectors={
            **{name: plan for name, plan in wiring.connectors.items() if name not in inner},
            _RETURNED: ConnectorPlan(),
        },
    )
    for crawler in range(1, number + 1):
        made = _with_crawler(made, wiring, cut, crawler_name(crawler), settings)
    used = provider_names([*made.components.values(), *made.providers.values()])
    unused = _stood_in_for(wiring, leaving).keys() - used
    kept = {name: plan for name, plan in made.providers.items() if name not in unused}
    return msgspec.structs.replace(made, providers=kept)


class _Cut(msgspec.Struct, frozen=True):
    """Where a wiring is cut: the components that leave, and the connectors that cross."""

    leaving: list[str]
    tasks: str
    answers: str
    outlet: str
    """The connector by which visits leave the last of these components."""
    slots: int
    """URLs of one crawler."""

    def inner(self, wiring: Wiring) -> set[str]:
        """Connectors between the components that leave."""
        all_of = {arrow for name in self.leaving for arrow in wiring.components[name].ports.values()}
        return all_of - {self.tasks, self.answers, self.outlet}


def _with_crawler(
    made: Wiring, whole: Wiring, cut: _Cut, process: str, settings: Mapping[str, Mapping[str, Any]]
) -> Wiring:
    """The wiring with one crawler more, whose stages are those of the whole one."""

    def own(arrow: str) -> str:
        return f"{arrow}-{process}"

    leased, renewals = own("leased"), own("renewals")
    local = {own(arrow): whole.connectors[arrow] for arrow in (*cut.inner(whole), cut.tasks)}
    remote = dict.fromkeys((leased, renewals, own(cut.answers), own(cut.outlet)), ConnectorPlan("unix:"))
    stand_ins = _stood_in_for(whole, cut.leaving)
    names = {name: own(name) for name in stand_ins}
    components = {
        own("lease"): ComponentPlan(
            _LEASE,
            {
                "tasks": cut.tasks,
                "leased": leased,
                "renewals": renewals,
                "returned": _RETURNED,
                "answered": own(cut.answers),
                "answers": cut.answers,
                "fetched": own(cut.outlet),
                "visits": cut.outlet,
            },
            settings={**settings.get("lease", {}), "crawler": process, "slots": cut.slots},
        ),
        own("take"): ComponentPlan(
            _TAKE,
            {"leased": leased, "renewals": renewals, "tasks": own(cut.tasks)},
            settings=dict(settings.get("take", {})),
            process=process,
        ),
    }
    for name in cut.leaving:
        plan = whole.components[name]
        components[own(name)] = msgspec.structs.replace(
            plan,
            ports={role: own(arrow) for role, arrow in plan.ports.items()},
            providers={role: with_other_names(bound, names) for role, bound in plan.providers.items()},
            workers=cut.slots if plan.use == "fetch" else plan.workers,
            process=process,
        )
    return msgspec.structs.replace(
        made,
        components={**made.components, **components},
        connectors={**made.connectors, **local, **remote},
        providers={
            **made.providers,
            **{names[name]: ProviderPlan(HINTS[plan.use]) for name, plan in stand_ins.items()},
        },
    )


def gathered(wiring: Wiring) -> Wiring:
    """The wiring of one process that does what a divided one does: the first crawler's units take their place in it again."""
    crawlers = crawlers_of(wiring)
    if not crawlers:
        return wiring
    first = crawler_name(1)
    # Their shares were rounded up.
    frontier = wiring.components[wiring.only("frontier", "--crawlers needs")].settings
    concurrency = frontier.get("concurrency", FrontierSheet().concurrency)
    workers = min(concurrency, sum(plan.workers for plan in wiring.components.values() if plan.use == "fetch"))
    before = {name: name.removesuffix(f"-{first}") for name in wiring.providers if name.endswith(f"-{first}")}
    components: dict[str, ComponentPlan] = {}
    for name, plan in _gathered(wiring.components, first).items():
        if plan.use in (_LEASE, _TAKE):
            continue
        components[name] = msgspec.structs.replace(
            plan,
            ports={role: arrow.removesuffix(f"-{first}") for role, arrow in plan.ports.items() if arrow != _RETURNED},
            providers={role: with_other_names(bound, before) for role, bound in plan.providers.items()},
            workers=workers if plan.use == "fetch" else plan.workers,
            process=MAIN_PROCESS if plan.process == first else plan.process,
        )
    kept = {arrow for plan in components.values() for arrow in plan.ports.values()}
    connectors = {name: plan for name, plan in _gathered(wiring.connectors, first).items() if name in kept}
    ledger = next(name for name, plan in wiring.providers.items() if plan.use == "ledger")
    real = {hint: use for use, hint in HINTS.items()}
    providers = {
        name: ProviderPlan(real[plan.use], {"ledger": ledger})
        if name not in wiring.providers and plan.use in real
        else plan
        for name, plan in _gathered(wiring.providers, first).items()
    }
    return msgspec.structs.replace(wiring, components=components, connectors=connectors, providers=providers)


def _gathered(plans: Mapping[str, P], first: str) -> dict[str, P]:
    """The first crawler's plans under the names that they had before, where the keeper has none of that name; none of others'."""
    of_crawlers = {name for names in copies_of(plans).values() for name in names}
    own = {name: plan for name, plan in plans.items() if name not in of_crawlers}
    back = {name.removesuffix(f"-{first}"): plans[name] for name in of_crawlers if name.endswith(f"-{first}")}
    return {**back, **own}


def _leaving(wiring: Wiring, fetch: str) -> list[str]:
    """The components that crawlers take with them, in data order."""
    found, arrow = [fetch], wiring.components[fetch].ports["visits"]
    while True:
        behind = [name for name, plan in wiring.components.items() if plan.ports.get("inbox") == arrow]
        if len(behind) != 1 or wiring.components[behind[0]].use not in _LEAVING:
            return found
        found.append(behind[0])
        arrow = wiring.components[behind[0]].ports["outbox"]


def _stood_in_for(wiring: Wiring, leaving: Sequence[str]) -> dict[str, ProviderPlan]:
    """Parts of the ledger that these components ask: each crawler has a stand-in. Each process has other providers anyway."""
    bound = provider_names(wiring.components[one] for one in leaving)
    return {name: wiring.providers[name] for name in sorted(bound) if wiring.providers[name].use in HINTS}
