"""The parts of a host that a URL belongs to, and what about the URL is suspicious. Pure, linear in the URL.

Trap pages are unlike each other in exactly that part of their URL that generates them: numbers, identifiers, parameters, invented
names. The rest, when these are masked, is the *part* of the host: the first directory (`/calendar/**`), and within it one more
directory with the ending (`/calendar/#/*.html`). Directories that all pages of the host share say nothing, so they are skipped:
a site is judged alike wherever it is mounted. Upper case says nothing either.

A *shape* is a guess from a single URL: a path or query that only grows, as traps and broken links make. It sets aside at once; of
each kind some are fetched, and one that brings news frees all.
"""

from collections import Counter
from functools import lru_cache

import msgspec
from xxhash import xxh32_hexdigest

from gossamer.values.patterns import lazy_pattern
from gossamer.values.url import path_of

#: Directories that are skipped at most.
MOST_SKIPPED = 12

#: Characters of the longest segment, and of the longest skipped beginning, in a part's name: URLs are a stranger's, and names
#: are kept.
_LONGEST, _LONGEST_BEGINNING = 40, 100

#: Directories and kinds of files that are worked out once: the pages of a site lie in few.
REMEMBERED = 8_192

#: A decimal number of so many digits is invented rather than counted up to.
_COUNTED_DIGITS = 6

#: How often a segment occurs in a path before it repeats; numbers may always.
_REPEATED = 3

#: At least eight letters and digits together, as digests and session identifiers are.
_IDENTIFIER = lazy_pattern(r"(?=[^0-9]*[0-9])[0-9A-Za-z_-]{8,}")
#: A word with a short number behind it, as `daytime1` and `part-12`: people number directories so.
_NUMBERED_WORD = lazy_pattern(r"[A-Za-z_-]{3,}[0-9]{1,3}")
_NUMBER = lazy_pattern(r"[0-9]+")
_YEAR = lazy_pattern(r"(?:1[89]|[2-9][0-9])[0-9]{2}")
_DATE = lazy_pattern(r"[12][0-9]{3}[-_.]?(?:0[1-9]|1[0-2])(?:[-_.]?[0-3][0-9])?")
_DATE_NAMES = frozenset(("date", "day", "month", "year", "week", "from", "until", "start", "end", "y", "m", "d"))


class UrlTrace(msgspec.Struct, frozen=True, gc=False):
    """The suspicious marks of a URL."""

    is_dated: bool
    """A year with a month, or parameters that are named after dates."""
    is_counted: bool
    """It differs from its like in a short number: people number what there is."""
    repeats: bool
    """A segment of its path occurs for the third time."""
    identifier: str
    """A segment inside the path that looks like a session's identifier; empty without one."""
    rest: str
    """The path behind that identifier."""
    names: tuple[str, ...]
    """Names of its parameters in order, at least two of them; otherwise empty."""


def parts_of(url: str, skipped: int = 0) -> tuple[str, str]:
    """The parts of a host that a canonical URL belongs to, by one directory behind the first `skipped`, and by two."""
    path, mark, _ = path_of(url).partition("?")
    directory, _, name = path.rpartition("/")
    if mark:
        file = _masked(name) + mark
    else:
        file = f"*{name[name.rfind('.') :][:_LONGEST].lower() if '.' in name else ''}" if name else ""
    return _parts_of(directory, file, skipped)


@lru_cache(maxsize=REMEMBERED)
def _parts_of(directory: str, file: str, skipped: int) -> tuple[str, str]:
    """The same by the directory of a URL and its file, as it is named in a part."""
    directories = list(filter(None, directory.split("/")))
    beginning = f"/{'/'.join(directories[:skipped])}/".lower() if directories[:skipped] else "/"
    if len(beginning) > _LONGEST_BEGINNING:
        digest = xxh32_hexdigest(beginning.encode("utf-8", "surrogatepass"))
        beginning = f"{beginning[:_LONGEST_BEGINNING]}~{digest}/"
    shown = list(map(_masked, directories[skipped : skipped + 2]))
    if not shown:
        return f"{beginning}*", beginning + file
    deeper = "**/" if len(directories) > skipped + 2 else ""
    return f"{beginning}{shown[0]}/**", f"{beginning}{'/'.join(shown)}/{deeper}{file}"


def trace(url: str) -> UrlTrace:
    path, mark, query = path_of(url).partition("?")
    segments = [one for one in path.split("/") if one]
    is_directory = path.endswith("/")
    directories = segments if is_directory else segments[:-1]
    name = "" if is_directory or not segments else segments[-1]
    identifier, rest = _identifier(directories, name)
    parameters = [one for one in query.split("&") if one] if mark else []
    names = tuple(one.partition("=")[0] for one in parameters) if len(parameters) > 1 else ()
    return UrlTrace(
        is_dated=_is_dated(segments, parameters),
        is_counted=_is_counted(segments, parameters),
        repeats=len(segments) >= _REPEATED and most_repeated(segments) >= _REPEATED,
        identifier=identifier,
        rest=rest,
        names=names,
    )


def directory_of(url: str) -> str:
    path = path_of(url).partition("?")[0]
    return path[: path.rfind("/") + 1]


def named_directory_of(url: str) -> str:
    """The same, up to the first directory with a digit in its name: years and identifiers are no place where a site is mounted."""
    path = directory_of(url)
    digit = _NUMBER.search(path)
    return path if digit is None else path[: path.rfind("/", 0, digit.start()) + 1]


def shared_beginning(one: str, other: str) -> str:
    """The directories that two directories begin with."""
    while not other.startswith(one):
        one = one[: one.rfind("/", 0, len(one) - 1) + 1]
    return one


@lru_cache(maxsize=REMEMBERED)
def depth_of(directory: str) -> int:
    """How many directories are skipped where all pages share this beginning."""
    return min(MOST_SKIPPED, len(list(filter(None, directory.split("/")))))


def most_repeated(segments: list[str]) -> int:
    """How often the most frequent segment occurs. Numbers do not count: dates and trees repeat them."""
    named = [one for one in segments if not one.isdecimal()]
    if len(set(named)) == len(named):
        return 1 if named else 0  # as nearly all
    return max(Counter(named).values())


def _masked(segment: str) -> str:
    if segment.isdecimal():
        return "#"
    return "*" if _IDENTIFIER.fullmatch(segment) else segment[:_LONGEST].lower()


def _identifier(directories: list[str], name: str) -> tuple[str, str]:
    for place, segment in enumerate(directories):
        if segment.isdecimal() or _NUMBERED_WORD.fullmatch(segment):
            continue
        if _IDENTIFIER.fullmatch(segment):
            return segment, "/".join((*directories[place + 1 :], name))
    return "", ""


def _is_counted(segments: list[str], parameters: list[str]) -> bool:
    """Whether the last thing that a URL says is a number of a few digits, perhaps behind a word."""
    last = parameters[-1].partition("=")[2] or parameters[-1] if parameters else segments[-1] if segments else ""
    digits = last.partition(".")[0].lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-")
    return digits.isdecimal() and len(digits) <= _COUNTED_DIGITS


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


#: How often a segment may occur in a path that grows from page to page; numbers may always.
REPEATS = 2

#: How often a parameter may occur in a query; those that end in brackets may always.
PARAMETERS = 2

#: Directories that are worked out once. A URL has 8 KB at most.
_REMEMBERED = 1_024


def shape_of(url: str, source: str) -> str:
    """The name of the shape of a URL that was found on a page; empty for nearly all.

    ============================ ===============================================================================
    `trap:repeated-segments`     the link goes deeper from its page, and a segment that repeats does so once more
    `trap:repeated-parameters`   one parameter again and again, as lists do that add every choice to the last one
    ============================ ===============================================================================

    How deep a path is says nothing. That a segment repeats is no crime by itself (`/a/a/a`, once linked to, is a page); that it
    does so once more behind every link is.
    """
    if url.count("&") >= PARAMETERS:
        # Names that end in brackets are lists by intent (PHP, Rails).
        names = (one.partition("=")[0] for one in url.partition("?")[2].split("&") if one)
        counts = Counter(name for name in names if not name.endswith(("[]", "%5B%5D")))
        if max(counts.values(), default=0) > PARAMETERS:
            return "trap:repeated-parameters"
    # Three slashes belong to no segment.
    if url.count("/") > REPEATS + 3:
        directory = source.partition("?")[0].rpartition("/")[0] + "/"
        if url.startswith(directory) and _repeated_in(directory) >= REPEATS and most_repeated(_segments(url)) > REPEATS:
            return "trap:repeated-segments"
    return ""


@lru_cache(maxsize=_REMEMBERED)
def _repeated_in(directory: str) -> int:
    """How often the most frequent segment of a directory occurs: asked for each link of each of its pages."""
    return most_repeated(_segments(directory))


def _segments(url: str) -> list[str]:
    return [one for one in path_of(url).partition("?")[0].split("/") if one]
