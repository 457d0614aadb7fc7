"""What a story is made of: the values that `gossamer why --json` prints."""

import re
from typing import Any

import msgspec

#: The parts of a URL as written, whatever they hold (RFC 3986, appendix B).
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_NAMES = ("scheme", "authority", "path", "query", "fragment")


class Normalised(msgspec.Struct, frozen=True):
    """A part of the URL that its canonical form writes otherwise."""

    part: str
    given: str
    canonical: str


class Judged(msgspec.Struct, frozen=True):
    """What one filter says."""

    gate: str
    """`follow`: of the link; `fetch`: of the task, before it is asked for."""
    filter: str
    verdict: str
    """Empty where it lets the URL pass; otherwise the rule that refuses it."""


class RobotsWord(msgspec.Struct, frozen=True):
    """What robots.txt says."""

    ruling: str
    """`allowed`, `denied`, `wait`, or `unknown` where the file has not been read."""
    rule: str = ""
    line: int = 0
    delay: float = 0.0


class LeadingLink(msgspec.Struct, frozen=True):
    """A link that leads to the URL."""

    page: str
    relation: str
    nofollow: bool
    verdict: str = ""
    """Why it is not followed, as `nofollow: nofollow` (filter and rule); empty where the filters let it pass."""


class Story(msgspec.Struct, frozen=True):
    """The story of one URL."""

    asked: str
    url: str
    """Its canonical form: the one that a crawl goes by."""
    state: str
    """`unknown`, `refused`, `set_aside`, `queued`, `later`, `in_flight`, `done`, `deleted`, `owed` where it is another agent's, or
    `done_and_queued` where it is to be fetched again."""
    told: str
    """The state, in words."""
    normalised: list[Normalised]
    discovered_from: str = ""
    found_by: str = ""
    """The agent that found it and brought it by a file, where it is another one than that of this crawl."""
    relation: str = ""
    depth: int | None = None
    attempt: int = 0
    filters: list[Judged] = []
    robots: RobotsWord | None = None
    blocked_by: str = ""
    visits: list[dict[str, Any]] = []
    """Its lines in the crawl's log, the oldest first."""
    outcome: str = ""
    """Of the last visit."""
    record: dict[str, Any] | None = None
    """Where the archive keeps the last answer: file, offset, length."""
    duplicate_of: str = ""
    """The first URL of the same document, byte for byte."""
    near_duplicate_of: str = ""
    """The first URL of nearly the same text."""
    redirects: list[str] = []
    """Where a redirect leads, each further redirect included; a loop ends with a URL that it had before."""
    links: list[LeadingLink] = []
    """Links that lead to it, at most some."""
    host: dict[str, Any] | None = None
    """What is known of its host."""


def normalised(given: str, url: str) -> list[Normalised]:
    """The parts that a canonical URL writes otherwise than it was given."""
    before, after = _PARTS.fullmatch(given), _PARTS.fullmatch(url)
    assert before is not None and after is not None  # the pattern fits every text
    pairs = zip(_NAMES, before.groups(default=""), after.groups(default=""), strict=True)
    return [Normalised(part, old, new) for part, old, new in pairs if old != new]
