"""What a robots.txt says, as a value: kept with the host, handed between processes, asked about every URL. Pure.

:mod:`~gossamer.services.robots.reading` makes it out of bytes, :mod:`~gossamer.services.robots.matching` judges by it.
"""

from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import msgspec

from gossamer.services.robots.matching import Matcher, comparable_path, comparable_pattern, path_of

#: The agent of groups that are for everyone whom no other group names (RFC 9309, 2.2.1).
EVERYONE = "*"

ROBOTS_PATH = "/robots.txt"

#: Agents whose rules stay compiled in one value: a crawl asks for one, a comparison for a few.
MAX_READY = 16


class PathForm(StrEnum):
    """How paths are compared."""

    BYTES = "bytes"
    """Byte for byte as Google's open parser: escapes in rules are brought to upper case, URLs are taken as they are."""
    RFC9309 = "rfc9309"
    """As RFC 9309 says beyond that: `%7E` is `~` (2.2.2), `%2A` and `%24` stand for the characters (2.2.3), and
    /robots.txt itself is always allowed (2.2.2). What a crawl goes by."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The verdict on one URL."""

    allowed: bool
    rule: str = ""
    """The rule that decided, as `Disallow: /private`; empty where none fits."""
    line: int = 0
    """Its line in the file, from 1; 0 without a rule."""


class Rule(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One Allow or Disallow line that has a pattern."""

    allow: bool
    pattern: str
    """Percent-encoded where it was not ASCII, escapes in upper case."""
    line: int

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}"


class RuleGroup(msgspec.Struct, frozen=True, array_like=True):
    """Lines under one or more User-agent lines, as they stand in the file: an agent may be named by several groups."""

    agents: tuple[str, ...]
    """Product tokens in lower case; `*` is everyone."""
    rules: tuple[Rule, ...] = ()
    delay: float | None = None
    """Crawl-delay in seconds, the longest where there are several; None where there is none."""
    usage: tuple[str, ...] = ()
    """Content-Usage and Content-Signal lines, as they stand."""


class Rules(msgspec.Struct, frozen=True, array_like=True, dict=True, weakref=True):
    """A robots.txt, read. Groups for one agent are merged when that agent is asked about (RFC 9309, 2.2.1)."""

    groups: tuple[RuleGroup, ...] = ()
    sitemaps: tuple[str, ...] = ()
    """Values of Sitemap lines, as they stand, each once: they are for everyone."""
    usage: tuple[str, ...] = ()
    """Content-Usage and Content-Signal lines outside of every group."""
    form: PathForm = PathForm.RFC9309
    readable: bool = True
    """At least one line was understood, or there was none to understand."""

    def decide(self, agent: str, url: str) -> Decision:
        """May `agent` fetch `url`?

        Args:
            agent: product token as groups name it (`Gossamer`), compared without regard to case.
            url: taken as it is with :attr:`Form.BYTES`, otherwise brought to the comparable form; a canonical one is
                read fastest.
        """
        ready = self._ready.get(agent) or self._compile(agent)
        path = path_of(url)
        if self.form is PathForm.RFC9309:
            path = comparable_path(path)
            if path == ROBOTS_PATH:
                return _ROBOTS_ITSELF
        number = ready.matcher.find(path)
        if number < 0:
            return _NO_RULE
        rule = ready.rules[number]
        return Decision(rule.allow, str(rule), rule.line)

    def delay(self, agent: str) -> float | None:
        """Seconds between two requests that the site asks `agent` for; None where it does not say."""
        asked = [group.delay for group in self._groups_of(agent) if group.delay is not None]
        return max(asked, default=None)

    def usage_of(self, agent: str) -> tuple[str, ...]:
        """What the site says about the use of its content to `agent`, each line once."""
        own = (text for group in self._groups_of(agent) for text in group.usage)
        return tuple(dict.fromkeys((*self.usage, *own)))

    def for_agent(self, agent: str) -> "Rules":
        """Only what concerns `agent`, in one group and without sitemaps: what is kept for a host while a crawl runs."""
        own = self._groups_of(agent)
        if not own:
            return Rules(usage=self.usage, form=self.form, readable=self.readable)
        usage = tuple(dict.fromkeys(text for group in own for text in group.usage))
        group = RuleGroup((self._key(agent),), _merged(own), self.delay(agent), usage)
        return Rules((group,), usage=self.usage, form=self.form, readable=self.readable)

    def _key(self, agent: str) -> str:
        token = agent.lower() if agent.isascii() else agent
        return token if token in self._agents else EVERYONE

    def _groups_of(self, agent: str) -> list[RuleGroup]:
        key = self._key(agent)
        return [group for group in self.groups if key in group.agents]

    @cached_property
    def _agents(self) -> frozenset[str]:
        return frozenset(agent for group in self.groups for agent in group.agents)

    @cached_property
    def _ready(self) -> dict[str, "_Ready"]:
        """Compiled rules by agent, as asked."""
        return {}

    def _compile(self, agent: str) -> "_Ready":
        if len(self._ready) >= MAX_READY:
            self._ready.clear()
        rules = _merged(self._groups_of(agent))
        form = comparable_pattern if self.form is PathForm.RFC9309 else str
        ready = _Ready(rules, Matcher((rule.allow, form(rule.pattern)) for rule in rules))
        self._ready[agent] = ready
        return ready


class _Ready(NamedTuple):
    rules: tuple[Rule, ...]
    matcher: Matcher


_NO_RULE = Decision(True)
_ROBOTS_ITSELF = Decision(True, "robots.txt itself is always allowed")


def _merged(groups: list[RuleGroup]) -> tuple[Rule, ...]:
    """The rules of all groups in order, of equal ones the first."""
    if len(groups) == 1:
        return groups[0].rules
    first: dict[tuple[bool, str], Rule] = {}
    for group in groups:
        for rule in group.rules:
            first.setdefault((rule.allow, rule.pattern), rule)
    return tuple(first.values())
