"""robots.txt of every kind, held as data: the file is written from the rules, never parsed.

Place in the flow: `site` serves `text` of a host's rules; `graph` and the auditor ask `allowed`,
which is a plain reading of RFC 9309 (longest match wins, allow on a tie). Since the rules are known
as data, the auditor cannot share a parser's mistake with the crawler that it judges.

The patterns used depend only on a page's directory and on the last digit of its number. `graph`
relies on this to judge a million pages by some thousand representatives.
"""

import re
from functools import cache
from typing import Final

import msgspec

MOVED: Final = "/robots-moved.txt"
"""Where the robots.txt of a host of kind "redirect" really is."""


class RobotsGroup(msgspec.Struct, frozen=True):
    """Rules for some user agents ("*" is everyone else)."""

    agents: tuple[str, ...]
    rules: tuple[tuple[bool, str], ...] = ()
    """(allowed, pattern) in the order of the file."""
    delay: float | None = None
    """Crawl-delay in seconds."""


class SimRobots(msgspec.Struct, frozen=True):
    """The answer of a host to /robots.txt."""

    status: int = 200
    groups: tuple[RobotsGroup, ...] = ()
    prefix: bytes = b""
    """Bytes before the first line, such as a byte order mark."""
    newline: str = "\n"


def _everyone(*rules: tuple[bool, str], delay: float | None = None) -> tuple[RobotsGroup, ...]:
    return (RobotsGroup(agents=("*",), rules=rules, delay=delay),)


_JUNK: Final = b"<!DOCTYPE html><html><body><p>Welcome to our site</p></body></html>\n"

KINDS: Final = {
    "allow": SimRobots(groups=_everyone((False, ""))),
    "missing": SimRobots(status=404),
    "sections": SimRobots(groups=_everyone((False, "/s1/"), (False, "/s3/"), (False, "/private/"))),
    "wildcard": SimRobots(groups=_everyone((False, "/*7.html$"), (False, "/*?*sort="))),
    "longest": SimRobots(groups=_everyone((False, "/s1/"), (True, "/s1/*5.html$"), (False, "/s2/"), (True, "/s2/"))),
    "agents": SimRobots(
        groups=(
            RobotsGroup(agents=("BadBot", "EvilSpider"), rules=((False, "/"),)),
            RobotsGroup(agents=("Gossamer", "Wget"), rules=((False, "/s1/"),)),
            RobotsGroup(agents=("Scrapy",), rules=((False, "/s2/"),)),
            *_everyone((False, "/s3/")),
        )
    ),
    "delay": SimRobots(groups=_everyone((False, "/private/"), delay=1)),
    "bom": SimRobots(groups=_everyone((False, "/s1/")), prefix=b"\xef\xbb\xbf", newline="\r\n"),
    "redirect": SimRobots(status=301, groups=_everyone((False, "/s1/"))),
    "forbidden": SimRobots(status=403),
    "html": SimRobots(prefix=_JUNK),
    "deny": SimRobots(groups=_everyone((False, "/"))),
    "error": SimRobots(status=503),
}
"""The kinds of robots.txt; `hosts.ROBOTS_KINDS` says how common each is."""


def text(robots: SimRobots, sitemaps: list[str]) -> bytes:
    """Return the body of a robots.txt, naming the given sitemap URLs at its end."""
    lines: list[str] = []
    for group in robots.groups:
        lines += (f"User-agent: {agent}" for agent in group.agents)
        for allowed_here, pattern in group.rules:
            lines.append(f"{'Allow' if allowed_here else 'Disallow'}: {pattern}".rstrip())
        if group.delay is not None:
            lines.append(f"Crawl-delay: {group.delay:g}")
        lines.append("")
    lines += (f"Sitemap: {url}" for url in sitemaps)
    return robots.prefix + "".join(line + robots.newline for line in lines).encode()


@cache
def _matcher(pattern: str) -> re.Pattern[str]:
    """Return a pattern of robots.txt as a regular expression matched at the start of a path."""
    anchored = pattern.endswith("$")
    parts = pattern.rstrip("$").split("*")
    return re.compile(".*".join(map(re.escape, parts)) + ("$" if anchored else ""))


@cache
def group_for(robots: SimRobots, agent: str) -> RobotsGroup | None:
    """Return the group that a crawler has to obey; `agent` is its whole User-Agent value."""
    lowered = agent.lower()
    for group in robots.groups:
        if any(name.lower() in lowered for name in group.agents if name != "*"):
            return group
    return next((group for group in robots.groups if "*" in group.agents), None)


def allowed(kind: str, agent: str, target: str) -> bool:
    """Return whether a crawler may ask for a path (with its query) on a host of this kind."""
    robots = KINDS[kind]
    if robots.status >= 500:
        return False
    group = group_for(robots, agent)
    if group is None or target == "/robots.txt":
        return True
    best, verdict = -1, True
    for permits, pattern in group.rules:
        longer = len(pattern) > best or (len(pattern) == best and permits)
        if pattern and longer and _matcher(pattern).match(target):
            best, verdict = len(pattern), permits
    return verdict


UNRESTRICTED: Final = frozenset(
    kind
    for kind, robots in KINDS.items()
    if robots.status < 500 and not any(pattern for group in robots.groups for _, pattern in group.rules)
)
"""Kinds that allow everything to everyone."""


def crawl_delay(kind: str, agent: str) -> float:
    """Return the Crawl-delay in seconds that a host of this kind asks of a crawler, or 0."""
    group = group_for(KINDS[kind], agent)
    return (group.delay or 0.0) if group else 0.0
