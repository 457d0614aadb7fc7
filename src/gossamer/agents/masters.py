"""Masters of a crawl: their names, the wiring that they share, and what one of them runs.

Place in the flow: `--designation master` keeps both in the crawl directory; the wiring of a master is made here, from the kept
one, the crawl's own, and the agents' names.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents import wiring as parts
from gossamer.agents.cluster import LOCAL
from gossamer.agents.contract import SharedState
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.old_wirings import completed
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.ends import declared
from gossamer.engine.errors import BrokenWiring, WiringError
from gossamer.engine.files import replace_file
from gossamer.engine.graph import Graph
from gossamer.engine.planning import plan
from gossamer.engine.wiring import ComponentPlan, ConnectorPlan, ProviderPlan, Wiring, read, with_settings, write
from gossamer.storage.mailbox.shared_state import SharedFile, count_older_mail
from gossamer.storage.members import crawl_id
from gossamer.values.agents import agent_name, at_work, member
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Where masters have what they share, inside the crawl directory, beside the file of `shared_state`: their names and their wiring.
KEPT = _NAMES, _WIRING = "state/masters/names.json", "state/masters/wiring.toml"

_MASTER = "master-"

#: The unit that has the mail of a master.
MAIL = "mail"

#: The parts of the shipped wiring that stand for one agent; each agent of a crawl has its own.
_EXAMPLE = ("urls-master-00", "urls-agent-00", "mail-agent-00", "send-agent-00", "send-mail-agent-00", "agent-00")

#: Settings of a master's units that are those of the crawl's: (unit, setting) of the crawl -> (unit, setting) of the master.
SHARED_SETTINGS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("links", "aliases"): ("names", "aliases"),
    ("constraints", "only"): ("constraints", "only"),
    ("constraints", "never"): ("constraints", "never"),
}


def master_name(number: int) -> str:
    return f"{_MASTER}{number:02d}"


def is_master(name: str) -> bool:
    """Whether a process of a crawl is a master, and no agent."""
    return name.startswith(_MASTER)


class Masters(msgspec.Struct, frozen=True):
    """The masters of one crawl. One without any goes by the ring."""

    names: tuple[str, ...] = ()
    wiring: Wiring | None = None
    """Their common sheet, with one agent as an example."""

    def __bool__(self) -> bool:
        return bool(self.names)

    def write(self, directory: Path) -> None:
        """Keep them in a crawl directory. Raises OSError."""
        if self.wiring is not None:
            (directory / _WIRING).parent.mkdir(parents=True, exist_ok=True)
            write(directory / _WIRING, self.wiring)
            SharedFile(directory, is_new=True).close()
            replace_file(directory / _NAMES, msgspec.json.encode(self.names))


def masters_of(directory: Path) -> Masters:
    """The masters of the crawl in a directory; none of one that goes by the ring. Raises CrawlDirectoryError: what is kept of
    them is damaged."""
    path = directory / _NAMES
    try:
        names = msgspec.json.decode(path.read_bytes(), type=tuple[str, ...])
        return Masters(names, completed(read(directory / _WIRING)))
    except (FileNotFoundError, NotADirectoryError):
        return Masters()
    except (ValueError, BrokenWiring) as error:
        raise CrawlDirectoryError(f"{path.parent} is damaged: {error}; bring it back from a copy") from None


def masters_for(directory: Path, options: CrawlOptions) -> Masters:
    """The masters that a crawl is to have by its options, and by what its directory keeps where it goes on. Touches nothing.
    Raises UsageError: the options do not fit together, or do not fit the crawl; CrawlDirectoryError: what is kept of masters is
    damaged; WiringError: the wiring of masters cannot be run."""
    kept = masters_of(directory) if options.resume else Masters()
    _check(directory, options, has_masters=bool(kept))
    if not (kept or options.designation == "master"):
        return kept
    number = options.masters or len(kept.names) or 1
    wiring = kept.wiring or shipped("master")
    if options.policy or options.place:
        before = wiring.providers["policy"]
        settings: dict[str, Any] = dict(before.settings) if options.policy in ("", before.use) else {}
        if options.place:
            settings["places"] = list(options.place)
        given = ProviderPlan(options.policy or before.use, settings=settings)
        wiring = msgspec.structs.replace(wiring, providers={**wiring.providers, "policy": given})
    graph, policy = plan(wiring, catalog()), wiring.providers.get("policy")
    if policy is not None and policy.use == "by-place" and not policy.settings.get("places"):
        raise UsageError("--policy by-place needs places; give it some: --place hu=budapest --place 192.0.2.0/24=oslo")
    table = _marshal(wiring).providers["designations"]
    if number > 1 and SharedState not in declared(graph.providers[str(table)].unit).uses.values():
        raise WiringError(
            f"{wiring.source}: providers.{table} keeps its table for one master; "
            "let several masters use 'shared-designations', or leave --masters at 1"
        )
    return Masters(tuple(map(master_name, range(number))), wiring)


def _check(directory: Path, options: CrawlOptions, *, has_masters: bool) -> None:
    """Refuse options of masters that do not fit."""
    if options.resume:
        if has_masters and options.designation == "ring":
            raise UsageError(f"masters divide the crawl in {directory} since it was made; leave --designation out")
        if not has_masters and options.designation == "master":
            raise UsageError(
                f"the crawl in {directory} was made without masters, and keeps to the ring; leave --designation out"
            )
    elif options.designation == "master" and options.agents is None:
        raise UsageError("--designation master gives domains to several agents; say how many: --agents N")
    if not has_masters and options.designation != "master":
        for option in ("--masters", "--policy", "--place", "--agent-place"):
            is_for_machines = option == "--agent-place" and options.cluster not in ("", LOCAL)
            if getattr(options, option.removeprefix("--").replace("-", "_")) and not is_for_machines:
                more = ", or the --cluster that has machines there" if option == "--agent-place" else ""
                raise UsageError(f"{option} is about masters; add --designation master{more}")


def check_places(masters: Masters, members: Sequence[str]) -> None:
    """Refuse a policy that prefers agents at places where none stands. Raises UsageError."""
    policy = masters.wiring.providers.get("policy") if masters.wiring is not None else None
    if policy is None or policy.use != "by-place":
        return
    places = [str(rule).partition("=")[2] for rule in policy.settings.get("places", ())]
    if places and not {one.place for one in map(member, members)}.intersection(places):
        raise UsageError(
            f"no agent stands at {places[0]}; say which one does: --agent-place {agent_name(0)}={places[0]}"
        )


def _marshal(wiring: Wiring) -> ComponentPlan:
    found = [one for one in wiring.components.values() if one.use == "marshal"]
    if len(found) != 1:
        raise WiringError(f"{wiring.source}: {len(found)} components use 'marshal'; a master needs exactly one")
    return found[0]


def master_wiring(
    masters: Masters,
    crawl: Wiring,
    members: Sequence[str],
    master: str,
    folder: str,
    place: Path,
    *,
    is_far: bool = False,
) -> Wiring:
    """The wiring of one master.

    Args:
        crawl: the crawl's own wiring, for the settings that masters share.
        members: all agents, as :func:`gossamer.values.agents.member` reads them.
        folder: where agents and masters meet; a socket of each lies in it.
        is_far: agents are on other machines; files in the folder say where.

    Raises:
        WiringError: the wiring lacks a part.
    """
    assert masters.wiring is not None
    # The common sheet of all masters has an agent as an example.
    made, agents = masters.wiring, at_work(members)
    shared = {name: one for name, one in made.connectors.items() if name not in _EXAMPLE}
    own = {name: one for name, one in made.components.items() if name not in _EXAMPLE}
    arrow = parts.agent_arrow(master)
    connectors: dict[str, ConnectorPlan] = {arrow: parts.agent_connector(master, master, folder, is_far=is_far)}
    components: dict[str, ComponentPlan] = {}
    for agent in agents:
        connectors[parts.agent_arrow(agent)] = parts.agent_connector(agent, master, folder, is_far=is_far)
        connectors[parts.mail_arrow(agent)] = parts.agent_connector(agent, master, folder, "-mail", is_far=is_far)
        components[f"send-{agent}"] = parts.url_sender(agent, MAIL)
        components[f"send-mail-{agent}"] = parts.mail_sender(agent, MAIL)
        components[agent] = parts.agent_place(agent, master)
        components[agent].ports["mail"] = parts.mail_arrow(agent)
    bound = {
        name: msgspec.structs.replace(one, ports={**one.ports, "inbox": arrow}) if one.use == "marshal" else one
        for name, one in own.items()
    }
    made = msgspec.structs.replace(made, connectors={**shared, **connectors}, components={**bound, **components})
    rule = parts.ring_rule(parts.ledger_settings(crawl))
    settings: dict[str, dict[str, Any]] = {
        "marshal": dict(rule),
        "designations": {"members": list(members)},
        MAIL: {"agents": list(agents), **rule},
        "shared": {"directory": str(place), "crawl": crawl_id(place)},
    }
    units: dict[str, ComponentPlan | ProviderPlan] = {**crawl.providers, **crawl.components}
    for (unit, name), (of_master, setting) in SHARED_SETTINGS.items():
        if unit in units and name in units[unit].settings:
            settings.setdefault(of_master, {})[setting] = units[unit].settings[name]
    for unit, given in settings.items():
        made = with_settings(made, unit, given)
    return made


def designation_policy(wiring: Wiring) -> Any:
    """The policy of a master's wiring, as one that is not started (contract `agents.contract.DesignationPolicy`). Raises
    WiringError."""
    graph: Graph = plan(wiring, catalog())
    table = str(_marshal(wiring).providers["designations"])
    node = graph.providers[str(wiring.providers[table].providers["policy"])]
    return node.unit(node.sheet)


def check_shared(directory: Path) -> None:
    """Refuse a crawl whose masters have lost what they share, or have another crawl's. Raises CrawlDirectoryError: that is so."""
    with closing(SharedFile(directory, crawl=crawl_id(directory))):
        pass


def mail_waits(directory: Path) -> bool:
    """Whether mail of an older version waits in the file that masters share. Raises CrawlDirectoryError: it cannot be read."""
    with closing(SharedFile(directory)) as shared:
        return count_older_mail(shared.reading) > 0
