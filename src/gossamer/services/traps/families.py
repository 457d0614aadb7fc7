"""The part of a host that a URL belongs to, and what about the URL is suspicious. Pure, linear in the URL.

Trap pages are unlike each other in exactly that part of their URL that generates them: numbers, identifiers, parameters. What
is left when these are masked is the *family*: `/calendar/2026/01.html` is of `/calendar/#/.html`, `/shop/list?color=red` of
`/shop/list?`.
"""

import re
from functools import lru_cache

import msgspec

from gossamer.model.url import path_of

#: Segments that name a family: deeper ones are the part that grows.
_NAMING = 2

#: Characters of the longest part of a family's name: URLs are a stranger's, and names are kept.
_LONGEST = 40

#: Families that are worked out once: a page's links are mostly of its own family.
REMEMBERED = 8_192

#: At least eight letters and digits together, as digests and session identifiers are.
_IDENTIFIER = re.compile(r"(?=[^0-9]*[0-9])[0-9A-Za-z_-]{8,}")
#: A word with a short number behind it, as `daytime1` and `part-12`: people number directories so.
_NUMBERED_WORD = re.compile(r"[A-Za-z_-]{3,}[0-9]{1,3}")
_NUMBER = re.compile(r"[0-9]+")
_YEAR = re.compile(r"(?:1[89]|[2-9][0-9])[0-9]{2}")
_DATE = re.compile(r"[12][0-9]{3}[-_.]?(?:0[1-9]|1[0-2])(?:[-_.]?[0-3][0-9])?")
_DATE_NAMES = frozenset(("date", "day", "month", "year", "week", "from", "until", "start", "end", "y", "m", "d"))


class Trace(msgspec.Struct, frozen=True, gc=False):
    """A URL as trap detection sees it."""

    family: str
    """The masked path, with a `?` where there is a query."""
    is_dated: bool
    """A year with a month, or parameters that are named after dates."""
    identifier: str
    """A segment inside the path that looks like a session's identifier; empty without one."""
    rest: str
    """What stands behind that identifier."""
    names: tuple[str, ...]
    """Names of its parameters in order, at least two of them; otherwise empty."""
    segments: int


@lru_cache(maxsize=REMEMBERED)
def trace(url: str) -> Trace:
    """The trace of a canonical URL."""
    path, mark, query = path_of(url).partition("?")
    segments = [one for one in path.split("/") if one]
    directories = segments if path.endswith("/") else segments[:-1]
    name = "" if path.endswith("/") or not segments else segments[-1]
    identifier, rest = _identifier(directories, name)
    shown = "/".join(_masked(one) for one in directories[:_NAMING])
    ending = _masked(name) if mark else name[name.rfind(".") :][:_LONGEST] if "." in name else ""
    parameters = [one for one in query.split("&") if one] if mark else []
    names = tuple(one.partition("=")[0] for one in parameters) if len(parameters) > 1 else ()
    return Trace(
        family=f"{'/' if shown else ''}{shown}/{ending}{mark}",
        is_dated=_is_dated(segments, parameters),
        identifier=identifier,
        rest=rest,
        names=names,
        segments=len(segments),
    )


def _masked(segment: str) -> str:
    if segment.isdecimal():
        return "#"
    return "*" if _IDENTIFIER.fullmatch(segment) else segment[:_LONGEST]


def _identifier(directories: list[str], name: str) -> tuple[str, str]:
    for place, segment in enumerate(directories):
        if segment.isdecimal() or _NUMBERED_WORD.fullmatch(segment):
            continue
        if _IDENTIFIER.fullmatch(segment):
            return segment, "/".join((*directories[place + 1 :], name))
    return "", ""


def _is_dated(segments: list[str], parameters: list[str]) -> bool:
    for place, segment in enumerate(segments):
        stem = segment.partition(".")[0]
        if _DATE.fullmatch(stem):
            return True
        if place and _YEAR.fullmatch(segments[place - 1]) and _NUMBER.fullmatch(stem) and 1 <= int(stem[:3]) <= 53:
            return True
    dated = 0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if _DATE.fullmatch(value):
            return True
        dated += name.lower() in _DATE_NAMES and value.isdecimal()
    return dated > 1
