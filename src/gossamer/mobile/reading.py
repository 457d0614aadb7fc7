"""A crawler out of a file that a person wrote, in TOML; every mistake is one line with its place (docs/mobile.md).

Place in the flow: the command line reads a file here and gets the value of :mod:`gossamer.mobile.crawler`.
"""

import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine import sheet
from gossamer.engine.files import text_in, toml_of
from gossamer.engine.sheet import in_words, nearest
from gossamer.mobile.crawler import (
    DIGEST_PATTERN,
    NAME_PATTERN,
    BringRules,
    CrawlerFacts,
    CrawlerRefused,
    MobileCrawler,
    MobileProgram,
    Name,
    NamedProcessor,
    Parameter,
    TravelLimits,
    WordList,
    check_crawler,
)
from gossamer.values.errors import UsageError

#: Bytes of the largest file: one with all the URLs and lists that a crawler may have.
MAX_FILE = 32 << 20

#: Limits that may be written with units.
_UNITS = {"bytes": "bytes", "brought": "bytes", "seconds": "s"}

_TABLES: dict[str, type[msgspec.Struct]] = {
    "": MobileProgram,
    "limits": TravelLimits,
    "bring": BringRules,
    "processors[]": NamedProcessor,
    "facts": CrawlerFacts,
}
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_NO_SUCH_WORD = re.compile(r"Invalid enum value '(.*)'")
_NO_MATCH = re.compile(r"matching regex (.*)")
#: Patterns of names, as msgspec tells them, in words.
_PATTERNS = {
    repr(NAME_PATTERN): "a name of letters, digits, dots, hyphens and underscores, at most 64",
    repr(DIGEST_PATTERN): "a SHA-1 digest in base32: 32 capital letters and digits",
}
_MISSING = re.compile(r"Object missing required field `(.*)`")


def read_crawler(path: Path) -> MobileCrawler:
    """The crawler that a file describes, checked. Raises UsageError: the file cannot be read, or describes none; one line with
    the file, the line, the place and the remedy."""
    return parse_crawler(text_in(path, UsageError, most=MAX_FILE, remedy="; give the crawler fewer facts"), str(path))


def with_numbers(table: dict[str, Any], units: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """The same with `10m` and `1GB` as numbers. Raises CrawlerRefused."""
    read = dict(table)
    for name, unit in units.items():
        if isinstance(table.get(name), str):
            try:
                number = sheet.parse(table[name], unit)
            except ValueError as error:
                raise CrawlerRefused(f"{prefix}{name}", str(error)) from None
            read[name] = int(number) if unit == "bytes" else number
    return read


def parse_crawler(text: str, source: str = "crawler") -> MobileCrawler:
    """The crawler that a text in TOML describes, checked; `source` is what messages call the text.
    Raises UsageError: as :func:`read_crawler`."""
    plain = toml_of(text, source, UsageError)
    try:
        given = plain.pop("facts", {})
        # Values by name one by one, so that a message names the one that is wrong.
        for table, kind in (("keywords", WordList), ("parameters", Parameter)):
            if isinstance(given, dict) and isinstance(given.get(table), dict):
                for name, value in given[table].items():
                    place = f"facts.{table}.{name}"
                    converted(name, Name, _TABLES, place)
                    converted(value, kind, _TABLES, place)
        facts: CrawlerFacts = converted(given, CrawlerFacts, _TABLES, "facts")
        if isinstance(plain.get("limits"), dict):
            plain = {**plain, "limits": with_numbers(plain["limits"], _UNITS, "limits.")}
        crawler = MobileCrawler(converted(plain, MobileProgram, _TABLES), facts)
        check_crawler(crawler)
    except CrawlerRefused as refusal:
        line = line_of(text, refusal.place)
        where = f", line {line}" if line else ""
        raise UsageError(f"{source}{where}: {refusal}") from None
    return crawler


def converted(plain: Any, kind: Any, tables: Mapping[str, type[msgspec.Struct]], prefix: str = "") -> Any:
    """A value of a type, whose tables are those at these places. Raises CrawlerRefused: it is none."""
    try:
        return msgspec.convert(plain, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        reason, _, where = str(error).partition(" - at `$")
        path = where.rstrip("`").lstrip(".")
        place = f"{prefix}{path}" if path.startswith("[") else ".".join(filter(None, (prefix, path)))
        raise _refusal(reason, place, tables) from None


def _refusal(reason: str, place: str, tables: Mapping[str, type[msgspec.Struct]]) -> CrawlerRefused:
    if match := _UNKNOWN.fullmatch(reason):
        table = tables.get(re.sub(r"\[\d+\]|\[\.\.\.\]", "[]", place), tables[""])
        names = (*table.__struct_fields__, "facts") if table is MobileProgram and not place else table.__struct_fields__
        return CrawlerRefused(".".join(filter(None, (place, match[1]))), f"unknown key{nearest(match[1], names)}")
    if match := _MISSING.fullmatch(reason):
        return CrawlerRefused(place, f"the key {match[1]!r} is missing; add it")
    if match := _NO_SUCH_WORD.fullmatch(reason):
        return CrawlerRefused(place, f"unknown value {match[1]!r}{nearest(match[1], _words_at(place))}")
    if match := _NO_MATCH.search(reason):
        return CrawlerRefused(place, f"cannot be this; write {_PATTERNS.get(match[1], 'it differently')}")
    told = in_words(reason.replace("`int | float | str`", "a text or a number"))
    return CrawlerRefused(place, f"{told}; change the value")


def _words_at(place: str) -> list[str]:
    *table, name = re.sub(r"\[\d+\]", "", place).split(".")
    kind = typing.get_type_hints(_TABLES[".".join(table)]).get(name)
    found, left = [], [kind]
    while left:
        one = left.pop()
        parts = typing.get_args(one)
        found += [part for part in parts if isinstance(part, str)]
        left += [part for part in parts if typing.get_args(part)]
    return found


def line_of(text: str, place: str) -> int:
    """The line, counted from 1, where a place of a file begins; 0 where no line names it."""
    *tables, key = [re.sub(r"\[.*?\]", "", part) for part in place.split(".")] if place else [""]
    if not key:
        return 0
    wanted = ".".join(tables)
    found = _line(text, wanted, key)
    # A table, an inline table, or a key with dots: the nearest line above that names a part of the place.
    while not found and tables:
        key = tables.pop()
        found = _line(text, ".".join(tables), key)
    return found


def _line(text: str, table: str, key: str) -> int:
    names = re.compile(rf"\s*(?:\"{re.escape(key)}\"|'{re.escape(key)}'|{re.escape(key)})\s*[=.]")
    dotted = re.compile(rf"\s*{re.escape(f'{table}.{key}')}\s*=") if table else names
    whole = f"{table}.{key}".lstrip(".")
    current = ""
    for number, line in enumerate(text.split("\n"), 1):
        header = re.match(r"\s*\[\[?\s*([^\]]*?)\s*\]", line)
        if header and "=" not in line.partition("]")[0]:
            current = header[1].replace(" ", "").replace('"', "")
            if current == whole:
                return number
        elif (current == table and names.match(line)) or (not current and dotted.match(line)):
            return number
    return 0
