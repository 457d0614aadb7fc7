"""Items that a user's code yields, and exceptions that it raises, as values that every file and table can hold.

Place in the flow: the part that runs a user's code asks here for each yielded thing, so that a value that cannot be written is
refused where it was made, with the place inside it. Of each exception it makes a :class:`Raised`, which travels in the visit to
the table `errors` and leads to the line of the user's code.
"""

import math
import os.path
import re
import traceback
from collections.abc import Mapping
from typing import Any

import msgspec

from gossamer.values.visit import Item, Raised

#: The kind of an item that has no class of its own.
PLAIN_KIND = "item"

#: Values inside each other that are looked into; JSON readers give up soon after.
_DEEPEST = 100

#: Characters of a key that are shown.
_SHOWN = 60


class UnwritableItem(TypeError):
    """An item holds a value that no file or table can hold. The message names its place in the item and its type."""


def as_item(thing: object, url: str) -> Item:
    """A thing that a user's code yielded, as an item; `url` is that of the page, where the thing names none. Raises
    UnwritableItem: it holds a value that cannot be written; TypeError: it is nothing that an item can be made of; says what
    would be."""
    if isinstance(thing, Item):
        return Item(thing.kind, thing.url or url, plain(thing.value, thing.kind))
    if isinstance(thing, Mapping):
        return Item(PLAIN_KIND, url, plain(thing, PLAIN_KIND))
    kind = type(thing)
    signs = ("__struct_fields__", "__dataclass_fields__", "__attrs_attrs__", "model_dump")  # the last is pydantic's
    if any(hasattr(kind, sign) for sign in signs):
        return Item(kind.__name__, url, plain(thing, kind.__name__))
    raise TypeError(
        f"a {kind.__name__} is neither an item nor a request; yield a dict, a dataclass, a msgspec, attrs or pydantic "
        "object, a gossamer.Item, or what page.follow() gives"
    )


def plain(value: object, name: str) -> object:
    """A value as dicts, lists, texts, numbers, truths and None; `name` is what its place is called. Raises UnwritableItem: a
    part of it is none of these, and cannot become one."""
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_dumped)
    except (TypeError, ValueError, RecursionError) as error:
        where, what = _culprit(value, name, 0) or (name, str(error))
        raise UnwritableItem(f"{where}: {what}") from None


def _dumped(value: object) -> object:
    """A pydantic object as plain values; others have none."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    raise TypeError(type(value).__name__)


def _culprit(value: object, place: str, depth: int) -> tuple[str, str] | None:
    """The place of the first value that cannot be written, and why."""
    if depth > _DEEPEST:
        return place, "it is nested too deeply, or holds itself"
    parts = _parts(value)
    if parts is None:
        try:
            msgspec.to_builtins(value, str_keys=True, enc_hook=_dumped)
        except (TypeError, ValueError, RecursionError):
            kind = type(value)
            name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
            return place, f"a {name} cannot be written; take its text or its number instead"
        return None
    for key, inner in parts:
        found = _culprit(inner, f"{place}{key}", depth + 1)
        if found is not None:
            return found
    return None


def _parts(value: object) -> list[tuple[str, Any]] | None:
    """The parts of a value, each with the end of its place; None where it has none."""
    if isinstance(value, Mapping):
        return [(f".{str(key)[:_SHOWN]}", inner) for key, inner in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", inner) for index, inner in enumerate(value)]
    if isinstance(value, msgspec.Struct):
        return [(f".{name}", getattr(value, name)) for name in value.__struct_fields__]
    for sign in ("__dataclass_fields__", "__attrs_attrs__"):
        fields = getattr(type(value), sign, None)
        if fields is not None:
            names = [getattr(field, "name", field) for field in fields]
            return [(f".{name}", getattr(value, name, None)) for name in names]
    return None


#: The sign and digits of a number, with the marks between two digits: point, comma, apostrophe, or a space before exactly three.
_NUMBER = re.compile(
    rf"((?<![^\W_])[-\u2212])?([0-9](?:[0-9]|[.,'\u2019](?=[0-9])|[ \u00a0\u202f](?=\d{{3}}(?!\d))){{0,{_SHOWN - 1}}})"
)


def number_in(text: str) -> float | None:
    """The first number that a person reads in a text: `£12.50` is 12.5, `1.234,56 €` is 1234.56, `3 for 2` is 3.

    Marks between groups of three digits are passed over; of two different marks the last one parts the fraction. One mark that
    stands once before exactly three digits parts thousands, as `1,250` and `1.250` do in prices, unless nothing but a zero
    stands before it.
    """
    found = _NUMBER.search(text)
    if found is None:
        return None
    sign, digits = found.groups()
    marks = [letter for letter in digits if not letter.isdigit()]
    last = max(digits.rfind("."), digits.rfind(","))
    whole, fraction = digits, ""
    if last >= 0:
        behind = digits[last + 1 :]
        mark = digits[last]
        is_group = len(behind) == 3 and digits[:last].lstrip("0") != "" and (len(set(marks)) == 1)
        if not is_group and marks.count(mark) == 1:
            whole, fraction = digits[:last], behind
    number = float(".".join("".join(filter(str.isdigit, part)) or "0" for part in (whole, fraction)))
    return (-number if sign else number) if math.isfinite(number) else None


# -- exceptions

# Processes that read documents import this, and with pathlib they would look for a module of another system, `nt`: a session's
# current folder might have a file of that name. So paths are texts here.

#: Where our own modules lie: frames in them are not what the user wrote.
_OWN = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120

#: Where Python's own modules lie, in whichever environment.
_PYTHON = os.path.dirname(traceback.__file__)  # noqa: PTH120

#: Characters of a traceback that are kept, the innermost; of an error's text, and of who raised it.
MAX_TRACEBACK, MAX_ERROR, MAX_WHO = 8_000, 500, 200


def raised(who: str, error: BaseException, place: str = "") -> Raised:
    """An exception of a handler or processor (`who`), as it is kept. `place` is its file and line, where the traceback does not
    lead into the user's code."""
    text = "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    for frame, line in traceback.walk_tb(error.__traceback__):  # the innermost that is the user's wins
        place = place_of(frame.f_code.co_filename, line) or place
    return Raised(who[:MAX_WHO], place, told[:MAX_ERROR], text)


def place_of(file: str, line: int) -> str:
    """A line of the user's own code, as `spider.py:12`; empty for a line of ours, of Python's or of a package."""
    is_own = not file.startswith(("<", _OWN, _PYTHON)) and "site-packages" not in file
    return f"{shown_file(file)}:{line}" if is_own else ""


def shown_file(file: str) -> str:
    """A file as a person would name it: from where they stand, where it lies below."""
    try:
        current = os.getcwd()  # noqa: PTH109
    except OSError:
        return file
    real = os.path.realpath(file)
    return os.path.relpath(real, current) if real.startswith(current + os.sep) else file
