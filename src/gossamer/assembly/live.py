"""Options of a crawl that runs: what a new value comes to in its units, or why it cannot have one.

Place in the flow: `gossamer set DIR OPTION=VALUE` asks here for the settings, and changes them. An option that only names settings
of units takes them from :data:`~gossamer.assembly.compiling.SETTINGS`, others from :data:`RULES` below; one that cannot change
says why where it is declared (:mod:`gossamer.assembly.options`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from gossamer.assembly import secrets
from gossamer.assembly.compiling import OPTIONAL, SETTINGS, normal_steps
from gossamer.assembly.identity import token_of, user_agent
from gossamer.assembly.options import CrawlOptions
from gossamer.contracts.filtering import GATES
from gossamer.flow.graph import ComponentNode, ProviderNode
from gossamer.flow.sheet import build, nearest, properties
from gossamer.model.errors import UsageError
from gossamer.services.politeness.retries import WAITS
from gossamer.stages.fetch.proxy import absolute, addresses
from gossamer.stages.frontier.lingering import USUAL
from gossamer.stages.url_filter.expressions import by_gate

Units = Mapping[str, ComponentNode | ProviderNode]

Settings = dict[str, dict[str, Any]]
"""Unit -> setting -> value."""


def option_of(key: str) -> str:
    """The option that a person means by this key.

    Raises:
        UsageError: there is none of that name.
    """
    option, known = key.replace("-", "_"), [prop.name for prop in properties(CrawlOptions)]
    if option not in known:
        raise UsageError(f"there is no option {key!r}{nearest(option, known)}; or write UNIT.SETTING")
    return option


def settings_of(key: str, value: str, units: Units) -> Settings:
    """The settings that a new value of an option comes to in a running crawl.

    Args:
        key: the option as a person wrote it, with `-` or `_`.
        value: as a person wrote it.
        units: those of the crawl.

    Raises:
        UsageError: there is no such option, or it cannot change; says why.
        SettingError: the value does not do.
    """
    option = option_of(key)
    [reason] = [prop.reason for prop in properties(CrawlOptions) if prop.name == option]
    if reason:
        raise UsageError(f"option {key!r} cannot change while a crawl runs: {reason}")
    options = build(CrawlOptions, {option: value})
    made = RULES[option](options, units) if option in RULES else _named(option, getattr(options, option), units)
    for unit in made:
        if unit not in units:
            raise UsageError(f"option {key!r} sets unit {unit!r}, which this crawl does not have")
    return made


def _named(option: str, value: Any, units: Units) -> Settings:
    """The settings that are named for an option."""
    made: Settings = {}
    for unit, setting in SETTINGS[option]:
        if unit in OPTIONAL and unit not in units:
            continue
        made.setdefault(unit, {})[setting] = value
    return made


# -- options that are more than a setting


def _retries(options: CrawlOptions, units: Units) -> Settings:
    """Where nothing is tried again, nothing is left that could be waited for without end."""
    found: Settings = {"politeness": {"retries": list(WAITS[: options.retries])}}
    frontier = units.get("frontier")
    if (
        not options.retries
        and isinstance(frontier, ComponentNode)
        and getattr(frontier.sheet, "linger", 0) == "forever"
    ):
        found["frontier"] = {"linger": USUAL}
    return found


def _normalise(options: CrawlOptions, units: Units) -> Settings:
    return {"links": {"normalise": normal_steps(options.normalise)}}


def _noise(options: CrawlOptions, units: Units) -> Settings:
    word = options.noise
    return {"noise": {"drop": word != "keep", "file": "" if word in ("drop", "keep") else word}}


def _traps(options: CrawlOptions, units: Units) -> Settings:
    return {"traps": {"cut": options.traps == "cut"}}


def _filter(options: CrawlOptions, units: Units) -> Settings:
    given = by_gate([text for text in options.filter if text.strip()])
    return {"expressions": {gate: list(given.get(gate, ())) for gate in GATES}}


def _until(options: CrawlOptions, units: Units) -> Settings:
    commits = [node.plan for node in units.values() if isinstance(node, ComponentNode) and node.plan.use == "commit"]
    if not any("goals" in plan.providers for plan in commits):
        raise UsageError("until: this crawl's wiring has no goals; stop it, and give --until to gossamer resume")
    return {"expressions": {"until": options.until}}


def _language(options: CrawlOptions, units: Units) -> Settings:
    return {"process": {"languages": [word for word in options.language if word]}}


def _follow_nofollow(options: CrawlOptions, units: Units) -> Settings:
    follows = options.follow_nofollow
    return {"process": {"obey_nofollow": not follows}, "nofollow": {"follow": follows}}


def _page_requisites(options: CrawlOptions, units: Units) -> Settings:
    return {unit: {"requisites": options.page_requisites} for unit in ("html", "css", "scope")}


def _proxy(options: CrawlOptions, units: Units) -> Settings:
    entries = absolute(options.proxy)
    addresses(entries)
    made: Settings = {"http": {"proxy": list(entries)}}
    if "frontier" in units and getattr(units["frontier"].sheet, "proxied", False) is not bool(entries):
        made["frontier"] = {"proxied": bool(entries)}
    return made


def _header(options: CrawlOptions, units: Units) -> Settings:
    if secrets.plain(options.header) != options.header:
        raise UsageError(
            "header: a field that looks secret goes to the hosts of the seeds alone; "
            "stop the crawl, and give it to gossamer resume"
        )
    return {"http": {"header": list(options.header)}}


def _user_agent(options: CrawlOptions, units: Units) -> Settings:
    if not options.user_agent:
        raise UsageError("user-agent: give a product token, as Gossamer/1.0")
    return _agent(options.user_agent, units)


def _contact(options: CrawlOptions, units: Units) -> Settings:
    if not options.contact:
        raise UsageError("contact: give the URL of a page, or a mail address, as me@example.org")
    own = user_agent(CrawlOptions())
    if "http" in units and token_of(getattr(units["http"].sheet, "user_agent", own)) != token_of(own):
        raise UsageError("contact: this crawl has a user agent of its own, which says whom to write to; set user-agent")
    return _agent(user_agent(options), units)


def _agent(agent: str, units: Units) -> Settings:
    known = getattr(units["robots"].sheet, "agent", "") if "robots" in units else ""
    if known and token_of(agent) != known:
        raise UsageError(
            f"user-agent: robots.txt was read for {known!r}, so its product token stays while the crawl runs; "
            "stop it, and give the other one to gossamer resume"
        )
    return {"http": {"user_agent": agent}}


#: Option -> its settings, where they are more than :data:`~gossamer.assembly.compiling.SETTINGS` says.
RULES: dict[str, Callable[[CrawlOptions, Units], Settings]] = {
    "retries": _retries,
    "normalise": _normalise,
    "noise": _noise,
    "traps": _traps,
    "filter": _filter,
    "until": _until,
    "language": _language,
    "follow_nofollow": _follow_nofollow,
    "page_requisites": _page_requisites,
    "proxy": _proxy,
    "header": _header,
    "user_agent": _user_agent,
    "contact": _contact,
}
