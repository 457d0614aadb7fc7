"""A robots.txt as a value: :func:`parse` makes :class:`Rules` of its bytes, which judge URLs. Pure; never raises, linear in time.

Place in the flow: the rules are kept with the site, handed between processes, and asked about every URL (:mod:`matching` compiles
them).

The grammar is RFC 9309's (2.2), read with the tolerance of Google's open parser, so that a site is understood as it is
by the crawler that its owner most probably tested it with: line ends of every kind, a whole or broken UTF-8 mark, a
missing colon between exactly two words, misspelt names, names with a tail. Three things are kept otherwise, and say so:
a line may be of any length, UTF-16 behind its mark is decoded, and no other line ends a group (RFC 9309, 2.2.4).
"""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import msgspec

from gossamer.frontier.robots.matching import Matcher, comparable_path, comparable_pattern, path_of

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
    /robots.txt itself is always allowed (2.2.2). A crawl goes by this."""


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
        return ready.decisions[number]

    def delay(self, agent: str) -> float | None:
        """Seconds between two requests that the site asks `agent` for; None where it does not say."""
        asked = [group.delay for group in self._groups_of(agent) if group.delay is not None]
        return max(asked, default=None)

    def usage_of(self, agent: str) -> tuple[str, ...]:
        """The site's words about the use of its content to `agent`, each line once."""
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
        decisions = tuple(Decision(rule.allow, str(rule), rule.line) for rule in rules)
        ready = _Ready(decisions, Matcher((rule.allow, form(rule.pattern)) for rule in rules))
        self._ready[agent] = ready
        return ready


class _Ready(NamedTuple):
    decisions: tuple[Decision, ...]
    """By the number of the rule that decides."""
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


#: Bytes that are read, and parsed all; RFC 9309, 2.5, demands at least 500 KiB.
MAX_BYTES = 1 << 20

#: Seconds. A longer Crawl-delay counts as this: one page a day is the slowest crawl that still is one.
MAX_DELAY = 86_400.0

#: Of lines that are only recorded: more, or longer ones, are no statement but a load.
MAX_USAGE_LINES = 32
MAX_USAGE_BYTES = 512

#: Sitemap lines that are kept; a site with more has an index of them (sitemaps.org allows 50,000 entries in one).
MAX_SITEMAPS = 1000

#: Beginnings of names, in lower case. Misspelt ones are those that Google met so often that it reads them.
_AGENT = (b"user-agent", b"useragent", b"user agent")
_ALLOW = (b"allow",)
_DISALLOW = (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw")
_SITEMAP = (b"sitemap", b"site-map")
_USAGE = (b"content-usage", b"content-signal")
_DELAY = b"crawl-delay"

_TOKEN = re.compile(rb"[A-Za-z_-]*")
_WORDS = re.compile(rb"[ \t]+")
_TO_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_SECONDS = re.compile(rb"(?:\d+\.?\d*|\.\d+)(?![\w.])")


def parse(data: bytes, form: PathForm = PathForm.RFC9309) -> Rules:
    """Read a robots.txt; whatever it is, something comes of it.

    Args:
        data: the body without content coding; only the first :data:`MAX_BYTES` are read.
        form: how its rules will be compared with URLs.
    """
    reader = _Reader()
    reader.read(_unmarked(data[:MAX_BYTES]))
    return reader.rules(form)


def _unmarked(data: bytes) -> bytes:
    """Without a byte order mark, be it cut short; UTF-16 becomes UTF-8 where its mark says what it is."""
    for mark, encoding in ((BOM_UTF16_LE, "utf-16-le"), (BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return data[2:].decode(encoding, "replace").encode()
    for length in (3, 2, 1):
        if data.startswith(BOM_UTF8[:length]):
            return data[length:]
    return data


def _lines(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """(line number, name, value) of every line that names something; names in lower case, comments off."""
    for number, raw in enumerate(data.splitlines(), 1):
        if not raw:
            continue
        # A NUL ends a line for every reader that is written in C, Google's among them.
        line = raw.partition(b"\0")[0].partition(b"#")[0].strip()
        name, colon, value = line.partition(b":")
        if not colon:
            words = _WORDS.split(line)
            if len(words) != 2:
                continue
            name, value = words
        name = name.strip()
        if name:
            yield number, name.lower(), value.strip()


def _escaped(match: re.Match[bytes]) -> bytes:
    text = match[0]
    return text.upper() if len(text) == 3 else b"%%%02X" % text[0]


def _pattern(value: bytes) -> str:
    """A pattern as ASCII: other octets as `%XX`, escapes in upper case."""
    if b"%" in value or not value.isascii():
        value = _TO_ESCAPE.sub(_escaped, value)
    return value.decode("ascii")


def _agent(value: bytes) -> str:
    """The product token of a User-agent line: letters, `_` and `-` up to the first other character; or `*`."""
    if value[:1] == b"*" and not value[1:2].strip():
        return EVERYONE
    return _TOKEN.match(value)[0].decode("ascii").lower()  # type: ignore[index]  # it matches the empty text, too


def _text(value: bytes, limit: int) -> str:
    return value[:limit].decode("utf-8", "replace")


class _Reader:
    """The state of reading: the group that is open, and whether it has begun to have rules."""

    def __init__(self) -> None:
        self._groups: list[RuleGroup] = []
        self._agents: list[str] = []
        self._rules: dict[tuple[bool, str], Rule] = {}
        self._delays: dict[tuple[str, ...], float] = {}
        """By the agents that each delay is for."""
        self._delayed = 0
        """How many of the open agents have their delay lines behind them."""
        self._has_delay = False
        self._usage: list[str] = []
        self._has_rules = False
        self._everywhere: list[str] = []
        self._sitemaps: dict[str, None] = {}
        self._is_readable = False

    def read(self, data: bytes) -> None:
        """Take in the whole file."""
        for number, name, value in _lines(data):
            if name.startswith(_AGENT):
                self._open(_agent(value))
            elif name.startswith(_ALLOW):
                self._rule(True, value, number)
            elif name.startswith(_DISALLOW):
                self._rule(False, value, number)
            elif not self._other(name, value):
                continue
            self._is_readable = True
        if not self._is_readable:
            self._is_readable = all(not line.partition(b"#")[0].strip() for line in data.splitlines())

    def _open(self, agent: str) -> None:
        if self._has_rules:
            self._close()
        if self._has_delay:
            # Rules are for all agents above them, a delay only for those directly above: an owner who writes a file without
            # rules means each delay for the agents between it and the delay before.
            self._delayed, self._has_delay = len(self._agents), False
        self._agents.append(agent)

    def _close(self) -> None:
        if self._agents:
            rules = tuple(self._rules.values())
            agents = tuple(dict.fromkeys(self._agents))
            delay = self._delays.pop(agents, None)
            self._groups.append(RuleGroup(agents, rules, delay, tuple(self._usage)))
            self._groups += [RuleGroup(some, delay=seconds) for some, seconds in self._delays.items()]
        self._agents, self._rules, self._delays, self._usage = [], {}, {}, []
        self._has_rules = self._has_delay = False
        self._delayed = 0

    def _rule(self, allow: bool, value: bytes, number: int) -> None:
        if not self._agents:
            return  # Rules before the first User-agent line are for no agent.
        self._has_rules = True
        if value:
            pattern = _pattern(value)
            self._rules.setdefault((allow, pattern), Rule(allow, pattern, number))

    def _other(self, name: bytes, value: bytes) -> bool:
        """Lines that no group begins or ends with; False for names that are unknown."""
        if name.startswith(_SITEMAP):
            if value and len(self._sitemaps) < MAX_SITEMAPS:
                self._sitemaps[_text(value, MAX_BYTES)] = None
        elif name == _DELAY:
            seconds = _SECONDS.match(value)
            if seconds is not None and self._agents:
                agents = tuple(dict.fromkeys(self._agents[self._delayed :]))
                self._delays[agents] = max(self._delays.get(agents, 0.0), min(float(seconds[0]), MAX_DELAY))
                self._has_delay = True
        elif name.startswith(_USAGE):
            lines = self._usage if self._agents else self._everywhere
            if len(lines) < MAX_USAGE_LINES:
                lines.append(_text(name.title() + b": " + value, MAX_USAGE_BYTES))
        else:
            return False
        return True

    def rules(self, form: PathForm) -> Rules:
        """The rules that were read."""
        self._close()
        return Rules(
            groups=tuple(self._groups),
            sitemaps=tuple(self._sitemaps),
            usage=tuple(self._everywhere),
            form=form,
            readable=self._is_readable,
        )
