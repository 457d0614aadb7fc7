"""Times, sizes and rates as people write them: `10m`, `1.5h`, `16MB`, `2GiB`, `250ms`.

A plain number counts in the base unit (seconds, bytes, items).
"""

import re

_TIME = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
#: Decimal and binary prefixes are told apart, as in IEC 80000-13; `k` and `K` both mean 1,000.
_SIZE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

_QUANTITY = re.compile(r"\s*(-?\d+(?:[_\d]*)(?:\.\d+)?)\s*([a-zA-Z]*)(?:/s)?\s*")

#: Units that a setting may carry, with an example for messages.
EXAMPLES = {"s": "10m, 90s, 250ms or 1.5h", "bytes": "16MB, 512KiB or 1GB", "bytes/s": "2MB or 500KiB"}


def parse(text: str, unit: str) -> float:
    """The number that `text` stands for, in `unit` (`s`, `bytes`, `bytes/s`, anything else: a plain number).

    Raises:
        ValueError: it is no quantity of that unit; the message says how one is written.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(_advice(text, unit))
    number, suffix = float(match[1].replace("_", "")), match[2]
    if unit == "s" and (suffix == "" or suffix in _TIME):
        return number * _TIME.get(suffix, 1.0)
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
        if abs(count) >= limit:
            return f"{count / limit:.1f} {suffix}"
    return f"{count:.0f} B"


def show_seconds(seconds: float) -> str:
    """A duration for people: `1 h 05 min`, `2 min 03 s`, `4.2 s`."""
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{seconds:.1f} s"
