"""The wiring of one agent among several: that of a crawl of one, and the arrows to and from the others; or the files that it
exchanges with them, where no network connects them.

Place in the flow: the wiring of an agent is made here before it starts, from the crawl's own and the agents' names. The crawl
directory keeps the crawl's own, so that any number of agents can go on with it. With `--exchange files` (decision 93) each agent is
a crawl of its own, in a directory of its own, and its wiring is made by :func:`exchange_by_files`
(:mod:`gossamer.crawls.compiling` calls it).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.builder import Builder
from gossamer.crawls.options import CrawlOptions
from gossamer.engine import wiring as wirings
from gossamer.engine.remote.addresses import SECRET
from gossamer.engine.wiring import ComponentPlan, ConnectorPlan, ProviderPlan, Wiring
from gossamer.values.agents import agent_name, at_work
from gossamer.values.errors import UsageError
from gossamer.values.hosts import DomainRule, domain_rule

#: The provider that keeps what an agent owes the others.
OUTBOX = "outbox"

#: The commit's roles that a receiver of URLs has too.
_RECEIVING = ("seen", "traversal", "prioritizer", "task_gates")

#: Stores that have files of their own for each agent.
_OWN_FILES = ("ledger", "archive", "log", "sieve")

#: Seen sets that have, too.
_OWN_SETS = ("url-trie", "bloom-seen")

#: The use of the unit that takes orders of processors.
ORDERS_USE = "processor-orders"

#: The provider that publishes a crawl into a store, and the settings that an outbox takes of it.
STORE_USE = "store-publisher"

#: A program of the user's own that says what to fetch next. It stands in a process that another program starts.
_APPLICATION = "application"

#: The keeper that claims documents, and knows who else did.
DIGESTS = "digests"

#: URLs of one agent that wait for it here, and that are on their way: some batches.
_CAPACITY = 4_096


def with_agents(
    wiring: Wiring,
    members: Sequence[str],
    agent: str,
    folder: str,
    masters: Sequence[str] = (),
    *,
    is_far: bool = False,
) -> Wiring:
    """A copy of a crawl's wiring for one of its agents.

    Args:
        members: all agents, as :func:`gossamer.values.agents.member` reads them.
        folder: where agents meet; a socket of each lies in it.
        masters: names those that say whose a host is. Without any, the ring does, and agents send each other what they find.
        is_far: the others are on other machines; files in the folder say where.

    Raises:
        WiringError: the wiring has no frontier, no commit, or something bears a name that is needed here.
        UsageError: its URLs cannot be divided.
    """
    frontier, commit = divisible(wiring)
    ledger = wiring.components[commit].providers["ledger"]
    others = [name for name in at_work(members) if name != agent]
    wiring = _with_applications(wiring, agent, is_first=agent == at_work(members)[0])
    if not (others or masters):
        return _with_own_files(wiring, agent)
    found = [unit for unit, plan in wiring.providers.items() if plan.use == ORDERS_USE]
    stores = [unit for unit, plan in wiring.providers.items() if plan.use == STORE_USE]
    receiver = _receiver(wiring.components[commit], agent, found, stores)
    neighbours = masters or others
    providers = {
        "ring": ProviderPlan("ring", settings={"members": list(members), **ring_rule(ledger_settings(wiring))}),
        OUTBOX: _outbox(wiring, "ring", {"agent": agent}),
        DIGESTS: ProviderPlan("agent-digests", {"ledger": "divided", "outbox": OUTBOX}),
        "divided": ProviderPlan("divided-ledger", {"behind": ledger, "outbox": OUTBOX}),
    }
    components = {
        "receive": receiver,
        **{f"send-{other}": url_sender(other, OUTBOX) for other in neighbours},
        **{other: agent_place(other, agent, has_mail=bool(masters)) for other in neighbours},
    }
    connectors = {
        "arrived": ConnectorPlan(),
        **{agent_arrow(name): agent_connector(name, agent, folder, is_far=is_far) for name in (agent, *neighbours)},
    }
    if masters:
        # They say whose a host is, and not the ring. Agents prefer different masters, so that these share the work.
        first = at_work(members).index(agent) % len(masters)
        in_turn = [*masters[first:], *masters[:first]]
        providers[OUTBOX] = _outbox(wiring, "held", {"agent": agent, "masters": in_turn, "others": others})
        held = {"agent": agent, **ring_rule(ledger_settings(wiring))}
        providers["held"] = ProviderPlan("held-domains", {"ledger": "ledger", "ring": "ring"}, held)
        receiver.providers.update(held={"held": ["held"]}, mailbox={"mailbox": [OUTBOX]})
        ports = {"inbox": mail_arrow(agent), "outbox": "arrived"}
        components["receive-mail"] = msgspec.structs.replace(receiver, use="receive-mail", ports=ports)
        for name in (agent, *others):
            connectors[mail_arrow(name)] = agent_connector(name, agent, folder, "-mail", is_far=is_far)
        for other in others:
            components[f"send-mail-{other}"] = mail_sender(other, OUTBOX)
            places = {"mail": mail_arrow(other), "kept": mail_arrow(agent)}
            components[other] = ComponentPlan("other-agent", places, process=_process(other))
    wiring.check_free("several agents need", providers=providers, components=components, connectors=connectors)
    claiming = on_divided(wiring.components[commit], {})
    keepers: Any = claiming.providers.get("keepers", {})
    claiming.providers["keepers"] = {**keepers, "visits": [*keepers.get("visits", ()), DIGESTS]}
    changed = {
        frontier: on_divided(wiring.components[frontier], {"arrived": "arrived"}),
        commit: claiming,
        # URLs that crawlers find out of their hosts may be another agent's.
        **{name: on_divided(plan, {}) for name, plan in wiring.components.items() if plan.use == "crawlers"},
    }
    made = msgspec.structs.replace(
        wiring,
        providers={**wiring.providers, **providers},
        connectors={**wiring.connectors, **connectors},
        components={**wiring.components, **changed, **components},
    )
    for unit, plan in wiring.providers.items():
        if plan.use == "politeness" and others:
            turns = {
                "address_turns": True,
                "domain_turns": plan.settings.get("host_turns", False) or shares_domains(wiring),
            }
            made = wirings.with_settings(made, unit, turns)
    return _with_own_files(owing_orders(made), agent)


def owing_orders(wiring: Wiring) -> Wiring:
    """The wiring whose keepers of orders owe those about other agents' hosts to the outbox."""
    bound = {
        unit: msgspec.structs.replace(plan, providers={**plan.providers, "outboxes": {"orders": [OUTBOX]}})
        for unit, plan in wiring.providers.items()
        if plan.use == ORDERS_USE
    }
    return msgspec.structs.replace(wiring, providers={**wiring.providers, **bound})


def has_application(wiring: Wiring) -> bool:
    return any(plan.use == _APPLICATION for plan in wiring.components.values())


def only_applications(wiring: Wiring, process: str) -> bool:
    """Whether nothing stands in a process but such programs."""
    return all(plan.use == _APPLICATION for plan in wiring.components.values() if plan.process == process)


def _with_applications(wiring: Wiring, agent: str, *, is_first: bool) -> Wiring:
    """The wiring in which each agent sends its visits to the user's applications under its own name, and the first one takes
    their tasks: where these belong to another one, it sends them on."""
    components, connectors = dict(wiring.components), dict(wiring.connectors)
    for name, plan in wiring.components.items():
        if plan.use != _APPLICATION:
            continue
        visits = connectors[plan.ports["records"]]
        named = msgspec.structs.replace(visits, options={**visits.options, "slot": _process(agent)})
        connectors[plan.ports["records"]] = named
        if not is_first and "urls" in plan.ports:
            ports = {role: arrow for role, arrow in plan.ports.items() if role != "urls"}
            components[name] = msgspec.structs.replace(plan, ports=ports)
            connectors[plan.ports["urls"]] = ConnectorPlan(capacity=wiring.connectors[plan.ports["urls"]].capacity)
    return msgspec.structs.replace(wiring, components=components, connectors=connectors)


def _with_own_files(wiring: Wiring, agent: str) -> Wiring:
    """The wiring with files of the agent's own. An only agent needs nothing else."""
    made = wiring
    own: Mapping[str, dict[str, Any]] = {
        "no-archive": {},
        "json-log": {"name": agent},
        "tables": {"agent": agent, "log_name": agent},
    }
    for unit in _OWN_FILES:
        if unit in made.providers:
            made = wirings.with_settings(made, unit, own.get(made.providers[unit].use, {"agent": agent}))
    for unit, plan in wiring.providers.items():
        if plan.use in _OWN_SETS:
            made = wirings.with_settings(made, unit, {"agent": agent})
    return made


def ledger_settings(wiring: Wiring) -> Mapping[str, Any]:
    return wiring.providers["ledger"].settings


def ring_rule(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of ledgers by which hosts are assigned, for a ring."""
    return {name: settings[name] for name in ("division", "together") if name in settings}


def shares_domains(wiring: Wiring) -> bool:
    """Whether hosts of one registered domain may be those of several agents."""
    return bool(ring_rule(ledger_settings(wiring)).get("division") == "host")


def domain_rule_of(settings: Mapping[str, Any]) -> DomainRule:
    return domain_rule(settings.get("division", "domain"), settings.get("together", ()))


def divisible(wiring: Wiring) -> tuple[str, str]:
    """The names of the frontier and of the commit of a wiring whose URLs can be divided. Raises WiringError: it has not one of
    each; UsageError: a random walk is to be divided."""
    frontier, commit = wiring.only("frontier", "several agents need"), wiring.only("commit", "several agents need")
    if wiring.components[commit].settings.get("again"):
        raise UsageError("a random walk returns to pages, so its URLs cannot be divided; leave --agents at 1")
    return frontier, commit


def on_divided(plan: ComponentPlan, ports: Mapping[str, str]) -> ComponentPlan:
    providers: dict[str, Any] = {**plan.providers, "ledger": "divided"}
    return msgspec.structs.replace(plan, ports={**plan.ports, **ports}, providers=providers)


def _receiver(commit: ComponentPlan, agent: str, orders: Sequence[str], stores: Sequence[str]) -> ComponentPlan:
    """It judges as the commit does, and takes the orders that the commit's keepers take. With a store, it acknowledges only what no
    successor of this process lacks."""
    roles: dict[str, Any] = {role: commit.providers[role] for role in _RECEIVING}
    roles["claims"] = {"claims": [DIGESTS]}
    if orders:
        roles["orders"] = {"orders": list(orders)}
    if stores:
        roles["owners"] = {"owners": list(stores)}
    return ComponentPlan(
        "receive-urls",
        {"inbox": agent_arrow(agent), "outbox": "arrived"},
        {"ledger": "divided", **roles},
        dict(commit.settings),
    )


def has_store(wiring: Wiring) -> bool:
    return any(plan.use == STORE_USE for plan in wiring.providers.values())


def _outbox(wiring: Wiring, designation: str, settings: Mapping[str, Any]) -> ProviderPlan:
    """The mailbox of an agent; with a store, one that forgets only what the others cannot lose."""
    directory = {"directory": wiring.providers["ledger"].settings.get("directory", ".")} if has_store(wiring) else {}
    bound: dict[str, Any] = {"ledger": "ledger", "designation": designation}
    return ProviderPlan("retaining-outbox" if directory else "outbox", bound, {**settings, **directory})


def url_sender(to: str, owing: str) -> ComponentPlan:
    return ComponentPlan("send-urls", {"outbox": agent_arrow(to)}, {"owed": owing}, {"agent": to})


def mail_sender(to: str, owing: str) -> ComponentPlan:
    return ComponentPlan("send-mail", {"outbox": mail_arrow(to)}, {"owed": owing}, {"agent": to})


def agent_place(other: str, own: str, *, has_mail: bool = False) -> ComponentPlan:
    """The place of another agent, or of a master, in the wiring of this one."""
    ports = {"urls": agent_arrow(other), "found": agent_arrow(own)}
    return ComponentPlan(
        "other-agent", {**ports, "kept": mail_arrow(own)} if has_mail else ports, process=_process(other)
    )


def agent_connector(to: str, own: str, folder: str, what: str = "", *, is_far: bool = False) -> ConnectorPlan:
    """The connector that leads to an agent or a master, as this one has it; on another machine all of one share its address."""
    options: dict[str, Any] = {"kept": True, "slot": _process(own)}
    if is_far:
        options["secret_file"] = f"{folder}/{SECRET}"
        return ConnectorPlan(f"peer:{folder}/{to}", _CAPACITY, options)
    return ConnectorPlan(f"unix:{folder}/{to}{what}.sock", _CAPACITY, options)


def agent_arrow(agent: str) -> str:
    return f"urls-{agent}"


def mail_arrow(agent: str) -> str:
    return f"mail-{agent}"


def _process(agent: str) -> str:
    """The name of an agent in the wiring of another: a process that another program starts."""
    return f"outside-{agent}"


# The wiring of an agent that exchanges files with the others.
#
#     commit, frontier ── push ──► `divided` ──► `ledger`, where the host is ours
#                                      └───────► `outbox` ──► exchange/out/*.urls
#     exchange/in/*.urls ──► the commit's rules ──► `divided`
#
# :mod:`merging` keeps the key, and brings files in.

#: Stores whose files bear the name of the agent, so that the files of all agents can lie in one folder.
_NAMED_FILES = frozenset({"ledger", "warc", "tables", "sieve", "url-trie", "bloom-seen"})


def exchange_by_files(builder: Builder) -> None:
    """Let the wiring exchange URLs by files, where the options say so or an earlier run did. Raises UsageError: the options do
    not fit together; WiringError: the wiring cannot be divided."""
    known = _file_outbox(builder.wiring)
    if known is None:
        members, agent = _chosen(builder.options)
        if not members:
            return
        wiring = builder.wiring
        frontier, commit = divisible(wiring)
        ledger = str(wiring.components[commit].providers["ledger"])
        providers = {
            "ring": ProviderPlan("ring", settings={"members": list(members)}),
            OUTBOX: ProviderPlan("file-outbox", {"ledger": "ledger", "designation": "ring"}, {"agent": agent}),
            "divided": ProviderPlan("divided-ledger", {"behind": ledger, "outbox": OUTBOX}),
        }
        wiring.check_free("several agents need", providers=providers)
        # URLs that crawlers find out of their hosts may be another agent's.
        found = (frontier, commit, *(name for name, plan in wiring.components.items() if plan.use == "crawlers"))
        components = {**wiring.components, **{name: on_divided(wiring.components[name], {}) for name in found}}
        divided = {**wiring.providers, **providers}
        builder.wiring = owing_orders(msgspec.structs.replace(wiring, providers=divided, components=components))
    else:
        options = builder.options
        for name in ("agents", "agent", *(["exchange_key"] if options.resume else [])):
            if getattr(options, name) not in (None, ""):
                raise UsageError(
                    "this crawl exchanges URLs by files, and keeps the agents that it began with; leave out "
                    f"--{name.replace('_', '-')}"
                )
        agent = str(known.settings["agent"])
    for unit, plan in builder.wiring.providers.items():
        if plan.use in _NAMED_FILES:
            builder.set("exchange", unit, {"agent": agent})


def is_exchanging(wiring: Wiring) -> bool:
    return _file_outbox(wiring) is not None


def _file_outbox(wiring: Wiring) -> ProviderPlan | None:
    plan = wiring.providers.get(OUTBOX)
    return plan if plan is not None and plan.use == "file-outbox" else None


def _chosen(options: CrawlOptions) -> tuple[tuple[str, ...], str]:
    """The agents of the exchange, and which of them this is; none where agents are connected. Raises UsageError: the options do
    not fit together."""
    if options.exchange != "files":
        for name, value in (("--agent", options.agent), ("--exchange-key", options.exchange_key)):
            if value:
                raise UsageError(f"{name} is for agents that exchange URLs by files; add --exchange files")
        return (), ""
    if options.resume:
        raise UsageError(
            "a crawl exchanges URLs by files from its beginning; begin one with gossamer crawl --exchange files"
        )
    if options.designation == "master" or options.masters or options.policy or options.place:
        raise UsageError(
            "agents that exchange files divide the hosts by the ring; leave out --designation, --masters, --policy and --place"
        )
    if options.exchange_key:
        from gossamer.storage.mailbox.sealed_files import read_key  # few crawls exchange files

        members = read_key(Path(options.exchange_key)).members
        if options.agents is not None and options.agents != len(members):
            raise UsageError(
                f"--agents {options.agents}: the exchange of {options.exchange_key} has {len(members)}; leave --agents out"
            )
    elif options.agents is None or options.agents < 2:
        raise UsageError("--exchange files: say how many agents share the crawl, as --agents 3 --agent 1")
    else:
        members = tuple(agent_name(number) for number in range(1, options.agents + 1))
    if options.agent is None:
        raise UsageError(
            f"--exchange files: say which of the {len(members)} agents this is: --agent 1 to {len(members)}"
        )
    if options.agent > len(members):
        raise UsageError(f"--agent {options.agent}: the exchange has {len(members)} agents")
    return members, agent_name(options.agent)
