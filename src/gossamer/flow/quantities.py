"""Times, sizes and rates as people write them: `10m`, `1.5h`, `1h30m`, `16MB`, `2GiB`, `250ms`; and the files that they write.

A plain number counts in the base unit (seconds, bytes, items).
"""

import codecs
import re

_TIME = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
#: Decimal and binary prefixes are told apart, as in IEC 80000-13; `k` and `K` both mean 1,000.
_SIZE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

#: Digits are bounded: nobody writes more, and the arithmetic below stays within what a float can hold.
_NUMBER = r"-?[0-9][0-9_]{0,30}(?:\.[0-9]{1,30})?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([a-zA-Z]*)(/s)?\s*")
_PARTS = re.compile(r"\s*([0-9]+)\s*(d|h|m|min)\s*(?=[0-9])")

#: Units that a setting may carry, with an example for messages.
EXAMPLES = {"s": "10m, 90s, 250ms, 1.5h or 1h30m", "bytes": "16MB, 512KiB or 1GB", "bytes/s": "2MB or 500KiB"}


def parse(text: str, unit: str) -> float:
    """The number that `text` stands for, in `unit` (`s`, `bytes`, `bytes/s`, anything else: a plain number).

    Raises:
        ValueError: it is no quantity of that unit; the message says how one is written.
    """
    whole, rest = _leading_parts(text) if unit == "s" else (0.0, text)
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


def _leading_parts(text: str) -> tuple[float, str]:
    """The sum of all but the last part of `1 h 05 min`, and that last part."""
    whole = 0.0
    while match := _PARTS.match(text):
        whole += int(match[1][:30]) * _TIME[match[2]]
        text = text[match.end() :]
    return whole, text


def _advice(text: str, unit: str) -> str:
    return f"{text!r} is not a quantity; write {EXAMPLES.get(unit, 'a plain number, as 3 or 0.5')}"


def show_bytes(count: float) -> str:
    """A size for people: `1.5 MB`."""
    for limit, suffix in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        # What would be rounded up to the next unit is shown in it: 999,990 is 1.0 MB, not 1000.0 kB.
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


def show_count(number: int, noun: str) -> str:
    """A number of things for people: `1 page`, `2 pages`, `12,345 pages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def written(data: bytes) -> str:
    """The text of a file that a person wrote, in UTF-8; some editors put a byte order mark before it.

    Raises:
        ValueError: it is in another encoding; the message names the line and the byte.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("the file is in UTF-16; save it as UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: byte 0x{data[error.start]:02X} is not UTF-8; save the file as UTF-8") from None
