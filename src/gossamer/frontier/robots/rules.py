"""A robots.txt as a value: :func:`parse` makes :class:`Rules` of its bytes, which judge URLs. Pure; never raises, linear in time.

Place in the flow: the rules are kept with the site, handed between processes, and asked about every URL.

The grammar is RFC 9309's (2.2), read with the tolerance of Google's open parser, so that a site is understood as it is
by the crawler that its owner most probably tested it with: line ends of every kind, a whole or broken UTF-8 mark, a
missing colon between exactly two words, misspelt names, names with a tail. Three things are kept otherwise, and say so:
a line may be of any length, UTF-16 behind its mark is decoded, and no other line ends a group (RFC 9309, 2.2.4).

A rule matches where its pattern fits the beginning of the path; `*` stands for any text and a final `$` for the end
(RFC 9309, 2.2.2 and 2.2.3). The longest pattern wins, and on a tie the one that allows. So plain patterns are looked
up by their lengths, longest first, and only patterns with `*` are tried one by one, as long as they could still win.
"""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import msgspec

from gossamer.values.patterns import lazy_pattern

#: Text that must be rewritten before a path is compared as RFC 9309, 2.2.2 demands: escapes, what has a meaning in
#: patterns, and everything that is not ASCII.
_REWRITE = lazy_pattern(r"%[0-9A-Fa-f]{2}|[*$]|[^\x00-\x7f]+")

#: RFC 3986, 2.3: an escape of one of these stands for the character itself.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

#: Where the path of a URL begins, should it not begin with a slash.
_PATH_START = lazy_pattern(r"[/?;]")

#: Up to so many plain patterns it is cheaper to ask once whether any of them fits (15 ns each) than to look up the
#: path by each of their lengths (100 ns each); most URLs fit none.
MANY_PATTERNS = 256


def path_of(url: str) -> str:
    """Path and query of a URL as they stand, without the fragment; begins with `/` whatever the URL is. Canonical URLs take the
    first lines. Others are cut as Google's parser cuts them: a scheme stands before `://` unless a path began already."""
    if url.startswith(("http://", "https://")):
        slash = url.find("/", 8)
        authority = url[8:slash]
        if slash > 0 and "?" not in authority and ";" not in authority and "#" not in authority:
            return url[slash:] if "#" not in url else url[slash : url.index("#")]
    offset = 2 if url.startswith("//") else 0
    scheme_end, start = url.find("://", offset), _PATH_START.search(url, offset)
    if scheme_end >= 0 and (start is None or start.start() >= scheme_end):
        start = _PATH_START.search(url, scheme_end + 3)
    if start is None:
        return "/"
    begin, fragment = start.start(), url.find("#", offset)
    if 0 <= fragment < begin:
        return "/"
    path = url[begin:] if fragment < 0 else url[begin:fragment]
    return path if path.startswith("/") else f"/{path}"


def _rewritten(match: re.Match[str]) -> str:
    text = match[0]
    if text[0] == "%":
        octet = chr(int(text[1:], 16))
        return octet if octet in _UNRESERVED else text.upper()
    return "".join(f"%{octet:02X}" for octet in text.encode("utf-8", "surrogatepass"))


def comparable_path(path: str) -> str:
    """A path in the one form in which RFC 9309 compares: unreserved characters plain, others as `%XX`."""
    if path.isascii() and "%" not in path and "*" not in path and "$" not in path:
        return path
    return _REWRITE.sub(_rewritten, path)


def comparable_pattern(pattern: str) -> str:
    """The same for a pattern: `*` anywhere and `$` at the end keep their meaning, another `$` is a character."""
    body, end = (pattern[:-1], "$") if pattern.endswith("$") else (pattern, "")
    return "*".join(_REWRITE.sub(_rewritten, part) for part in body.split("*")) + end


class _Wild(NamedTuple):
    """A pattern with `*`: it begins with `head`, has `parts` in this order, and, where it is anchored, ends with `tail`."""

    rank: int
    head: str
    parts: tuple[str, ...]
    tail: str | None
    rule: int

    def fits(self, path: str) -> bool:
        at = len(self.head)
        for part in self.parts:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return self.tail is None or (len(path) - len(self.tail) >= at and path.endswith(self.tail))


class Matcher:
    """The rules of one agent, compiled.

    Args:
        rules: (allows, pattern) in the order of the file; a rule's number is its place in here.
    """

    def __init__(self, rules: Iterable[tuple[bool, str]]) -> None:
        self._plain: dict[str, tuple[int, int]] = {}
        self._whole: dict[str, tuple[int, int]] = {}
        wild: list[_Wild] = []
        for number, (allow, pattern) in enumerate(rules):
            self._add(wild, allow, pattern, number)
            if allow and (index := pattern.rfind("/index.htm")) >= 0 and "/" not in pattern[index + 1 :]:
                # As Google's parser has it: a rule that allows a folder's index page allows the folder's own URL.
                self._add(wild, allow, f"{pattern[: index + 1]}$", number)
        self._lengths = sorted({len(pattern) for pattern in self._plain}, reverse=True)
        self._starts = tuple(self._plain) if len(self._plain) <= MANY_PATTERNS else "/"
        # Rank and head stand in front, since they alone are looked at for most paths.
        self._wild = tuple((one.rank, one.head, one) for one in sorted(wild, key=lambda one: -one.rank))

    def _add(self, wild: list[_Wild], allow: bool, pattern: str, number: int) -> None:
        if not pattern.startswith(("/", "*")):
            return  # Paths begin with a slash: it can never fit. An empty pattern says nothing.
        rank = 2 * len(pattern) + allow
        if "*" in pattern:
            is_anchored = pattern.endswith("$")
            head, *rest = (pattern[:-1] if is_anchored else pattern).split("*")
            tail = rest.pop() if is_anchored else None
            wild.append(_Wild(rank, head, tuple(filter(None, rest)), tail, number))
        else:
            table, key = (self._whole, pattern[:-1]) if pattern.endswith("$") else (self._plain, pattern)
            if rank > table.get(key, (-1, 0))[0]:
                table[key] = (rank, number)

    def find(self, path: str) -> int:
        """The number of the rule that decides about a path that begins with a slash; -1 where none fits.

        Ranks order the rules: twice the pattern's length, and one more for those that allow.
        """
        rank, found = self._whole.get(path, (-1, -1))
        if path.startswith(self._starts):
            for length in self._lengths:
                if (hit := self._plain.get(path[:length])) is not None:
                    rank, found = max((rank, found), hit)
                    break
        for wild_rank, head, one in self._wild:
            if wild_rank <= rank:
                break
            if path.startswith(head) and one.fits(path):
                return one.rule
        return found


#: The agent of groups for all agents that no other group names (RFC 9309, 2.2.1).
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
        """May `agent` fetch `url`? The agent is a product token as groups name it (`Gossamer`), compared without regard to case.
        The URL is taken as it is with :attr:`PathForm.BYTES`, otherwise brought to the comparable form."""
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
        return max((group.delay for group in self._groups_of(agent) if group.delay is not None), default=None)

    def usage_of(self, agent: str) -> tuple[str, ...]:
        own = (text for group in self._groups_of(agent) for text in group.usage)
        return tuple(dict.fromkeys((*self.usage, *own)))

    def for_agent(self, agent: str) -> "Rules":
        """Only what concerns `agent`, in one group and without sitemaps: that is kept for a host while a crawl runs."""
        own = self._groups_of(agent)
        if not own:
            return Rules(usage=self.usage, form=self.form, readable=self.readable)
        usage = tuple(dict.fromkeys(text for group in own for text in group.usage))
        group = RuleGroup((self._key(agent),), _merged(own), self.delay(agent), usage)
        return Rules((group,), usage=self.usage, form=self.form, readable=self.readable)

    def _key(self, agent: str) -> str:
        token = agent.lower() if agent.isascii() else agent
        return token if any(token in group.agents for group in self.groups) else EVERYONE

    def _groups_of(self, agent: str) -> list[RuleGroup]:
        key = self._key(agent)
        return [group for group in self.groups if key in group.agents]

    @cached_property
    def _ready(self) -> dict[str, "_Ready"]:
        return {}

    def _compile(self, agent: str) -> "_Ready":
        if len(self._ready) >= MAX_READY:
            self._ready.clear()
        rules = _merged(self._groups_of(agent))
        form = comparable_pattern if self.form is PathForm.RFC9309 else str
        decisions = tuple(Decision(rule.allow, str(rule), rule.line) for rule in rules)
        self._ready[agent] = ready = _Ready(decisions, Matcher((rule.allow, form(rule.pattern)) for rule in rules))
        return ready


class _Ready(NamedTuple):
    decisions: tuple[Decision, ...]
    """By the number of the rule that decides."""
    matcher: Matcher


_NO_RULE = Decision(True)
_ROBOTS_ITSELF = Decision(True, "robots.txt itself is always allowed")


def _merged(groups: list[RuleGroup]) -> tuple[Rule, ...]:
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

_TOKEN = lazy_pattern(rb"[A-Za-z_-]*")
_WORDS = lazy_pattern(rb"[ \t]+")
_TO_ESCAPE = lazy_pattern(rb"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_SECONDS = lazy_pattern(rb"(?:\d+\.?\d*|\.\d+)(?![\w.])")


def parse(data: bytes, form: PathForm = PathForm.RFC9309) -> Rules:
    """Read a robots.txt, the first :data:`MAX_BYTES` of a body without content coding; whatever it is, something comes of it.
    `form` says how its rules will be compared with URLs."""
    data, reader = data[:MAX_BYTES], _Reader()
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        data = data[2:].decode("utf-16-le" if data.startswith(BOM_UTF16_LE) else "utf-16-be", "replace").encode()
    else:  # a mark of UTF-8 may be cut short
        data = data[next((length for length in (3, 2, 1) if data.startswith(BOM_UTF8[:length])), 0) :]
    reader.read(data)
    return reader.rules(form)


def _lines(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """(line number, name, value) of every line that names something; names in lower case, comments off."""
    for number, raw in enumerate(data.splitlines(), 1):
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
        for number, name, value in _lines(data):
            if name.startswith(_AGENT):
                # The product token: letters, `_` and `-` up to the first other character; or `*`.
                is_everyone = value[:1] == b"*" and not value[1:2].strip()
                token = _TOKEN.match(value)
                self._open(EVERYONE if is_everyone or token is None else token[0].decode("ascii").lower())
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
            # As ASCII: other octets as `%XX`, escapes in upper case.
            pattern = (value if b"%" not in value and value.isascii() else _TO_ESCAPE.sub(_escaped, value)).decode(
                "ascii"
            )
            self._rules.setdefault((allow, pattern), Rule(allow, pattern, number))

    def _other(self, name: bytes, value: bytes) -> bool:
        """Lines that no group begins or ends with; False for names that are unknown."""
        if name.startswith(_SITEMAP):
            if value and len(self._sitemaps) < MAX_SITEMAPS:
                self._sitemaps[value.decode("utf-8", "replace")] = None
        elif name == _DELAY:
            seconds = _SECONDS.match(value)
            if seconds is not None and self._agents:
                agents = tuple(dict.fromkeys(self._agents[self._delayed :]))
                self._delays[agents] = max(self._delays.get(agents, 0.0), min(float(seconds[0]), MAX_DELAY))
                self._has_delay = True
        elif name.startswith(_USAGE):
            lines = self._usage if self._agents else self._everywhere
            if len(lines) < MAX_USAGE_LINES:
                lines.append((name.title() + b": " + value)[:MAX_USAGE_BYTES].decode("utf-8", "replace"))
        else:
            return False
        return True

    def rules(self, form: PathForm) -> Rules:
        self._close()
        return Rules(
            groups=tuple(self._groups),
            sitemaps=tuple(self._sitemaps),
            usage=tuple(self._everywhere),
            form=form,
            readable=self._is_readable,
        )
