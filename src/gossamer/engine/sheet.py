"""Property sheets: all settings of a unit, as one frozen, typed, documented value (row C5).

A unit names its sheet class; the wiring fills it in, checked; while the unit runs, a *new* sheet replaces the old one::

    class FetchSheet(Sheet, frozen=True):
        timeout: Annotated[float, setting("Seconds for a whole fetch.", unit="s", ge=0.1)] = 120.0
        agent: Annotated[str, setting("Sent as User-Agent.", restart="it is part of open connections")] = "Gossamer"

Reflection (:func:`properties`) is what reference, `topology`, `set` and the dashboard read: nothing that watches a unit
needs to know it.
"""

import codecs
import math
import re
import types
import typing
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from gossamer.engine.errors import SettingError

# -- times, sizes and rates as people write them: `10m`, `1h30m`, `16MB`, `2GiB`, `250ms`
# A plain number counts in the base unit (seconds, bytes, items).

_TIME = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
#: Decimal and binary prefixes are told apart, as in IEC 80000-13; `k` and `K` both mean 1,000.
_SIZE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

#: Digits are bounded: people write no more, and the arithmetic below stays within what a float can hold.
_NUMBER = r"-?[0-9][0-9_]{0,30}(?:\.[0-9]{1,30})?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([a-zA-Z]*)(/s)?\s*")
_PARTS = re.compile(r"\s*([0-9]+)\s*(d|h|m|min)\s*(?=[0-9])")

#: Units that a setting may carry, with an example for messages.
EXAMPLES = {"s": "10m, 90s, 250ms, 1.5h or 1h30m", "bytes": "16MB, 512KiB or 1GB", "bytes/s": "2MB or 500KiB"}


def parse(text: str, unit: str) -> float:
    """The number that `text` stands for, in `unit` (`s`, `bytes`, `bytes/s`, anything else: a plain number). Raises
    ValueError: it is no quantity of that unit; the message says how one is written."""
    whole, rest = 0.0, text
    while unit == "s" and (part := _PARTS.match(rest)):  # all but the last part of `1 h 05 min`
        whole += int(part[1][:30]) * _TIME[part[2]]
        rest = rest[part.end() :]
    match = _QUANTITY.fullmatch(rest)
    if match is None or (match[3] and not unit.endswith("/s")) or (whole and not match[2]):
        raise ValueError(_advice(text, unit))
    digits, suffix = match[1].replace("_", ""), match[2]
    # Whole numbers stay whole: a float would round above 2**53.
    number = float(digits) if "." in digits else int(digits)
    if unit == "s" and (suffix == "" or suffix in _TIME):
        return whole + number * _TIME.get(suffix, 1.0)
    if unit in ("bytes", "bytes/s"):
        prefix = suffix.lower().removesuffix("b")
        if prefix in _SIZE:
            return number * _SIZE[prefix]
    elif suffix == "" and unit != "s":
        return number
    raise ValueError(_advice(text, unit))


def _advice(text: str, unit: str) -> str:
    return f"{text!r} is not a quantity; write {EXAMPLES.get(unit, 'a plain number, as 3 or 0.5')}"


def show_bytes(count: float) -> str:
    """A size for people: `1.5 MB`."""
    for limit, suffix in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        # A count that would be rounded up to the next unit is shown in it: 999,990 is 1.0 MB, not 1000.0 kB.
        if abs(count) >= limit * 0.99995 and (limit > 1e3 or abs(count) >= limit):
            return f"{count / limit:.1f} {suffix}"
    return f"{count:.0f} B"


def show_seconds(seconds: float) -> str:
    """A duration for people: `1 h 05 min`, `2 min 03 s`, `4.2 s`."""
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
    if round(seconds, 1) >= 60:
        whole = max(60, int(seconds))
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{seconds:.1f} s"


#: Units of time and size in which a value can be written exactly, the largest first.
_EXACT_TIME = (("d", 86400), ("h", 3600), ("min", 60))
_EXACT_SIZE = (
    *(("TiB", 2**40), ("TB", 10**12), ("GiB", 2**30), ("GB", 10**9), ("MiB", 2**20), ("MB", 10**6)),
    *(("KiB", 2**10), ("kB", 10**3)),
)


def show_quantity(value: object, unit: str) -> str:
    """A value of a setting, exactly and with its unit, as :func:`parse` reads it: `16 MiB`, `5 min`, `0.25 s`."""
    if unit not in EXAMPLES or isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    exact, least = (_EXACT_TIME, "s") if unit == "s" else (_EXACT_SIZE, "B")
    suffix, size = next((one for one in exact if value and not value % one[1]), (least, 1))
    number = value // size if value == int(value) else value
    return f"{number:.15g} {suffix}{'/s' if unit == 'bytes/s' else ''}"


def show_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def written(data: bytes) -> str:
    """The text of a file that a person wrote, in UTF-8, with LF at the ends of its lines; some editors put a byte order mark before
    it, and others end lines with CR. Raises ValueError: it is in another encoding; the message names the line and the byte."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("the file is in UTF-16; save it as UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: byte 0x{data[error.start]:02X} is not UTF-8; save the file as UTF-8") from None


def option_name(setting: str) -> str:
    """The option of a setting as people write it: `--max-pages`."""
    return f"--{setting.replace('_', '-')}"


S = TypeVar("S", bound="Sheet")

#: The text in place of a secret.
HIDDEN = "(hidden)"
#: How msgspec begins when a word is none of a `Literal`'s; the word follows in quotes.
_NO_SUCH_WORD = "Invalid enum value "


class Sheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of property sheets. A subclass is `frozen=True` and every field is annotated with :func:`setting`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown(self).items())})"


class NoSettings(Sheet, frozen=True):
    """The sheet of a unit that has nothing to set."""


def setting(
    doc: str = "",
    *,
    unit: str = "",
    restart: str = "",
    secret: bool = False,
    names: str = "",
    was: str = "",
    sets: str = "",
    **bounds: Any,
) -> msgspec.Meta:
    """The text, unit and bounds of a field of a sheet. A field whose type is one of another sheet says only what differs there.

    Args:
        doc: one sentence for the reference.
        unit: `s`, `bytes`, `bytes/s` (then text such as `10m` or `16MB` is understood) or a noun (`requests`).
        restart: why the setting can change only with a restart; empty means that it is live.
        secret: it may hold a password, so its value is not shown where sheets are.
        names: what of this machine or its network a value can name, as `a file`, `code`, `a secret` or `a private network`; a
            browser may not give one.
        was: a name that it had, which is still understood.
        sets: for an option of a crawl, the units that get its value, as `frontier`; `http.max_body` where its name differs there.
        bounds: msgspec constraints (`ge`, `le`, `gt`, `lt`, `min_length`, `pattern`, ...).
    """
    said = {"unit": unit, "restart": restart, "secret": secret, "names": names, "was": was, "sets": sets}
    return msgspec.Meta(description=doc or None, extra={key: one for key, one in said.items() if one}, **bounds)


class Property(msgspec.Struct, frozen=True):
    """One field of a sheet, as a watcher sees it."""

    name: str
    type: str
    default: Any
    """`msgspec.NODEFAULT` where the setting must be given."""
    doc: str
    unit: str
    live: bool
    reason: str
    """Why it is not live; empty where it is."""
    bounds: str
    """As `>= 1, <= 10`; empty where there are none."""
    secret: bool = False
    """Its value is not to be shown."""
    names: str = ""
    """The thing of this machine or its network that a value can name, as `a file`; empty where it names nothing."""
    was: str = ""
    """A name that it had, which is still understood."""

    @property
    def kind(self) -> str:
        """Its type in words that people use: `a whole number`, `a number or auto`, `a list of texts`."""
        rest = re.sub(r"Literal\[.*?\]|None|\s*\|\s*", " ", self.type).strip()
        many = re.match(r"(?:tuple|list)\[(\w+)", rest)
        if many:
            return f"a list of {_KINDS_OF_MANY.get(many[1], 'values')}"
        named = _KINDS.get(rest.partition("[")[0], rest)
        return " or ".join(filter(None, (named, *self.words)))

    @property
    def words(self) -> tuple[str, ...]:
        listed = re.search(r"Literal\[(.*?)\]", self.type)
        return tuple(re.findall(r"'([^']*)'", listed[1])) if listed else ()


#: Types as people call them.
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text", "dict": "a table"}
_OTHERS = {"array": "a list", "object": "a table", "null": "nothing", "date": "a date", "datetime": "a time"}
_KINDS_OF_MANY = {"int": "whole numbers", "float": "numbers", "str": "texts"}


def in_words(reason: str) -> str:
    """The complaint of msgspec about a value, without names of Python's types: "expected a whole number >= 1"."""
    plain = (reason[:1].lower() + reason[1:]).replace(" | null`", "`")  # no file that a person writes has any
    return re.sub(r"`(\w+)`", lambda match: _KINDS.get(match[1], _OTHERS.get(match[1], match[0])), plain)


def shown(sheet: Sheet) -> dict[str, Any]:
    """The settings of a sheet as plain values, for people and programs: a secret that was given is :data:`HIDDEN`."""
    return hidden(type(sheet), msgspec.to_builtins(sheet))


def hidden(sheet: type[Sheet], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of plain values of some settings in which each secret that was given is :data:`HIDDEN`."""
    secret = {prop.name for prop in properties(sheet) if prop.secret}
    return {name: _hidden(value) if name in secret and value else value for name, value in values.items()}


def _hidden(value: Any) -> Any:
    return [HIDDEN] * len(value) if isinstance(value, list | tuple) else HIDDEN


_BOUNDS = (
    ("ge", ">="),
    ("gt", ">"),
    ("le", "<="),
    ("lt", "<"),
    ("multiple_of", "multiple of"),
    ("min_length", "length >="),
    ("max_length", "length <="),
    ("pattern", "matching"),
)


def metas(hint: Any) -> list[msgspec.Meta]:
    """The words about a type and about those that it joins, from the inside out: a later word overrules an earlier one."""
    if typing.get_origin(hint) not in (typing.Annotated, typing.Union, types.UnionType):
        return []
    found = [meta for part in typing.get_args(hint) for meta in metas(part)]
    return found + [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint.__name__
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(_type_name(option) for option in typing.get_args(hint)).replace("NoneType", "None")
    return str(hint).replace("typing.", "")


def properties(sheet: type[Sheet]) -> tuple[Property, ...]:
    kind: type = sheet
    return _properties(kind)


@lru_cache(maxsize=256)  # classes of sheets do not change; evaluating their annotations takes 0.3 ms
def _properties(sheet: type) -> tuple[Property, ...]:
    hints = typing.get_type_hints(sheet, include_extras=True)
    found = []
    for field in msgspec.structs.fields(sheet):
        said = metas(hints[field.name])
        doc = next((meta.description for meta in reversed(said) if meta.description), "")
        extra = {key: one for meta in said for key, one in (meta.extra or {}).items()}
        unit = str(extra.get("unit", ""))
        bounds = ", ".join(
            f"{sign} {show_quantity(value, unit)}"
            for meta in said
            for key, sign in _BOUNDS
            if (value := getattr(meta, key)) is not None
        )
        default = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
        restart = str(extra.get("restart", ""))
        kind = _type_name(hints[field.name])
        if "Annotated[" in kind:  # within a container, as in few
            kind = _type_name(typing.get_type_hints(sheet)[field.name])
        found.append(
            Property(
                name=field.name,
                type=kind,
                default=default,
                doc=doc,
                unit=unit,
                live=not restart,
                reason=restart,
                bounds=bounds,
                secret=bool(extra.get("secret")),
                names=str(extra.get("names", "")),
                was=str(extra.get("was", "")),
            )
        )
    return tuple(found)


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """` (did you mean X?)`, or the whole list where nothing is near; for messages about unknown names."""
    import difflib  # only a mistyped name needs it

    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}? Known: {', '.join(names)}"
    return f"; known: {', '.join(names) or 'none'}"


def build(sheet: type[S], values: Mapping[str, Any], base: S | None = None) -> S:
    """A sheet from plain values (TOML, JSON or text), on top of `base` where given. Raises SettingError: unknown name, wrong
    type or out of bounds; the message names the setting and what would be right."""
    # Most values are right as they stand, a text where the default is one, too: the annotations need no evaluation, of 0.3 ms.
    defaults = dict(zip(reversed(sheet.__struct_fields__), reversed(sheet.__struct_defaults__), strict=False))
    texts = [name for name, value in values.items() if isinstance(value, str)]
    is_plain = base is None and all(isinstance(defaults.get(name), str) for name in texts)
    if is_plain and _is_finite(values) and HIDDEN not in repr(values):
        with suppress(msgspec.ValidationError):  # one without default is not set, or a value is wrong: told below
            return msgspec.convert(values, sheet)
    known = {p.name: p for p in properties(sheet)}
    values = renamed(values, known.values())
    plain: dict[str, Any] = {} if base is None else typing.cast("dict[str, Any]", msgspec.to_builtins(base))
    for name, value in values.items():
        if name not in known:
            raise SettingError(f"unknown setting {name!r}{nearest(name, known)}")
        plain[name] = _read(value, known[name])
        if not _is_finite(plain[name]):
            raise SettingError(f"setting {name!r} cannot be {value}{_hint(known[name])}")
        if known[name].secret and plain[name] and plain[name] == _hidden(plain[name]):
            raise SettingError(f"setting {name!r} was hidden when this wiring was printed; give its value again")
    for name, prop in known.items():
        if prop.default is msgspec.NODEFAULT and name not in plain:
            raise SettingError(f"setting {name!r} is not set and has no default{_hint(prop)}")
    try:
        return msgspec.convert(plain, sheet)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$")
        name = where.strip("`.").split("[")[0].split(".")[0]
        if name not in known:
            raise SettingError(in_words(reason)) from None
        is_secret = known[name].secret
        if not is_secret and reason.startswith(_NO_SUCH_WORD):
            # A word of a closed list: the nearest says more than the type does.
            word = reason.removeprefix(_NO_SUCH_WORD)[1:-1]
            raise SettingError(f"setting {name!r}: unknown value {word!r}{nearest(word, known[name].words)}") from None
        value = HIDDEN if is_secret else repr(plain.get(name))
        raise SettingError(f"setting {name!r} cannot be {value}{_hint(known[name])}") from None


def _is_finite(value: object) -> bool:
    """Whether no number of a plain value is infinite or none: TOML and Python can write such, and no bound of a setting can."""
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def renamed(values: Mapping[str, Any], known: Iterable[Property]) -> dict[str, Any]:
    now = {prop.was: prop.name for prop in known if prop.was}
    return {now.get(name, name): value for name, value in values.items()}


def _read(value: Any, prop: Property) -> Any:
    """Text to a number or a list where the property wants one; everything else is left to the type check."""
    if not isinstance(value, str) or prop.type.startswith("str"):
        return value
    if prop.type.startswith(("dict", "tuple", "list")):
        return _read_many(value, prop)
    if "bool" in prop.type:
        return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(value, value)
    if "None" in prop.type and value in ("none", ""):
        return None
    if f"'{value}'" in prop.type:  # a word that stands beside numbers, as `auto`
        return value
    wants_number = "float" in prop.type or "int" in prop.type
    if not wants_number:
        return value
    try:
        number = parse(value, prop.unit)
    except ValueError as error:
        words = "".join(f", or {word}" for word in re.findall(r"'([^']+)'", prop.type))
        raise SettingError(f"setting {prop.name!r}: {error}{words}") from None
    return int(number) if "float" not in prop.type and number == int(number) else number


def _read_many(text: str, prop: Property) -> Any:
    """A list or table written as JSON (`["a", "b"]`, `{"example.org": 5}`), or the only entry of a list; numbers and known words
    also with commas between them."""
    kind = "object" if prop.type.startswith("dict") else "list"
    if kind == "list" and not text.startswith("["):
        if "str" in prop.type:
            return [text] if text else []
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return [parse(part, prop.unit) for part in parts] if "float" in prop.type else parts
    try:
        return msgspec.json.decode(text)
    except ValueError as error:
        told = HIDDEN if prop.secret else repr(text)
        raise SettingError(f"setting {prop.name!r}: {told} is no JSON {kind}: {error}") from None


#: Units and bounds as people say them.
_UNITS = {"s": "seconds", "bytes/s": "bytes a second", "pages/s": "pages a second"}
_BOUND_WORDS = (
    *(("length >=", "with a length of at least"), (">=", "at least"), ("<=", "at most")),
    *((">", "above"), ("<", "below")),
)


def _hint(prop: Property) -> str:
    """The values that a setting takes: `; give a whole number of pages, at least 1 (Stop after this many pages.)`."""
    unit = f" of {_UNITS.get(prop.unit, prop.unit)}" if prop.unit else ""
    bounds = prop.bounds
    for sign, words in _BOUND_WORDS:
        bounds = bounds.replace(sign, words)
    kind, otherwise, word = prop.kind.partition(" or ")
    right = f"{kind}{unit}{f', {bounds}' if bounds else ''}{',' if otherwise and bounds else ''}{otherwise}{word}"
    return f"; give {right} ({prop.doc})"


def change(sheet: S, values: Mapping[str, Any], *, running: bool) -> S:
    """A copy of `sheet` with some values replaced. Raises SettingError: as :func:`build`; or, for a running unit, the setting
    takes a restart."""
    if running:
        fixed = {p.name: p.reason for p in properties(type(sheet)) if not p.live}
        for name in values:
            if name in fixed:
                raise SettingError(f"setting {name!r} can change only with a restart: {fixed[name]}")
    return build(type(sheet), values, base=sheet)
