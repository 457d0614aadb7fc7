"""Parts of a canonical URL as predicates look at them: slices of the text, never a second parser (fault 34)."""

from collections import Counter

from gossamer.model.url import path_of


def path(url: str) -> str:
    """The path without the query; `/` where the URL has none."""
    return path_of(url).partition("?")[0]


def query(url: str) -> str:
    """The query without its `?`; empty without one."""
    return url.partition("?")[2]


def parameters(url: str) -> list[str]:
    """The parameters of the query in order, each as `name=value` or `name`."""
    text = query(url)
    return [one for one in text.split("&") if one] if text else []


def extension(url: str) -> str:
    """What follows the last dot of the last segment, in lower case; empty without one. A name's leading dot is none."""
    name = path(url).rpartition("/")[2]
    stem, dot, last = name.rpartition(".")
    return last.lower() if dot and stem else ""


def segments(url: str) -> list[str]:
    """The segments of the path that are not empty."""
    return [one for one in path(url).split("/") if one]


def repeats(url: str) -> int:
    """How often the most frequent segment of the path occurs; numbers do not count, since dates and trees repeat them."""
    counts = Counter(one for one in segments(url) if not one.isdecimal())
    return max(counts.values(), default=0)
