"""The wiring of an agent that no network connects with the others, and its options: `--exchange files` (decision 93).

    commit, frontier ── push ──► `divided` ──► `ledger`, where the host is ours
                                     └───────► `outbox` ──► exchange/out/*.urls
    exchange/in/*.urls ──► the commit's rules ──► `divided`

Place in the flow: :func:`exchange_by_files` puts these units into the crawl's own wiring (:mod:`gossamer.crawls.compiling` calls
it), and :class:`~gossamer.crawls.crawl.Crawl` keeps the key. Each agent is a crawl of its own, in a directory of its own;
:mod:`merging` brings files in.
"""

from pathlib import Path

import msgspec

from gossamer.agents.wiring import OUTBOX, divisible, on_divided, owing_orders
from gossamer.crawls.builder import Builder
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.wiring import ProviderPlan, Wiring
from gossamer.storage.mailbox.sealed_files import EXCHANGE_KEY, ExchangeKey, new_key, read_key, write_key
from gossamer.values.agents import agent_name, member
from gossamer.values.errors import UsageError

#: Stores whose files bear the name of the agent, so that the files of all agents can lie in one folder.
_OWN_FILES = frozenset({"ledger", "warc", "tables", "sieve", "url-trie", "bloom-seen"})


def exchange_by_files(builder: Builder) -> None:
    """Let the wiring exchange URLs by files, where the options say so or an earlier run did. Raises UsageError: the options do
    not fit together; WiringError: the wiring cannot be divided."""
    known = _outbox(builder.wiring)
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
        # What crawlers find out of their hosts may be another agent's.
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
        if plan.use in _OWN_FILES:
            builder.set("exchange", unit, {"agent": agent})


def is_exchanging(wiring: Wiring) -> bool:
    return _outbox(wiring) is not None


def _outbox(wiring: Wiring) -> ProviderPlan | None:
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


class ExchangeNote:
    """The key of an exchange, on its way into the crawl directory."""

    def __init__(self, directory: Path, options: CrawlOptions, wiring: Wiring) -> None:
        """Read the key, or make one; nothing is written yet. Raises UsageError: it cannot be read, or it is another agent that
        makes it."""
        self._path = directory / EXCHANGE_KEY
        self._key: ExchangeKey | None = None
        self._agent = str(wiring.providers[OUTBOX].settings["agent"])
        self.is_new = not options.resume and not options.exchange_key
        """This agent has made the key, and others need it."""
        if not options.resume:
            members = tuple(wiring.providers["ring"].settings["members"])
            if self.is_new and self._agent != member(members[0]).agent:
                raise UsageError(
                    f"{self._agent} needs the key of the exchange: --exchange-key FILE; agent 1 makes it when it begins, and "
                    f"keeps it as {EXCHANGE_KEY} in its crawl directory"
                )
            self._key = new_key(members) if self.is_new else read_key(Path(options.exchange_key))

    def register(self) -> None:
        if self._key is not None:
            write_key(self._path, self._key)

    def lines(self) -> list[str]:
        """The lines for a person when the crawl begins."""
        if not self.is_new or self._key is None:
            return []
        others = " and ".join(
            str(number) for number in range(1, len(self._key.members) + 1) if agent_name(number) != self._agent
        )
        return [f"take a copy of {self._path} to agent {others}, for --exchange-key FILE; keep it secret"]
