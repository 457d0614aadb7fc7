"""Crawler traps: pages without end, each a function of its own URL.

Place in the flow: some hosts (`Host.trap`) link to `entry`; `site` sends every URL for which
`belongs` holds here; the auditor counts what a crawler spent on them. A crawler that follows every
link never finishes such a host: there is always a next month, a deeper directory, a fresh session,
another combination of filters, or one more page that is not there and says 200.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

ENTRIES: Final = {
    "calendar": "/calendar/2026/01.html",
    "loop": "/loop/a/",
    "session": "/session/start/1.html",
    "facets": "/shop/list?color=red",
    "soft404": "/missing/1.html",
}
"""Where each kind of trap begins."""

_PREFIXES: Final = {
    "calendar": "/calendar/",
    "loop": "/loop/",
    "session": "/session/",
    "facets": "/shop/",
}

_FACETS: Final = {
    "color": ("red", "green", "blue", "black"),
    "size": ("s", "m", "l", "xl"),
    "brand": ("acme", "globex", "initech", "umbrella"),
    "sort": ("price", "name", "date"),
    "page": ("1", "2", "3", "4", "5", "6", "7", "8"),
}


def belongs(trap: str, target: str) -> bool:
    """Return whether a path with its query lies inside a host's trap (never for `trap` "").

    A host of soft 404s answers *every* unknown path; the caller asks here only for those.
    """
    return trap == "soft404" or (trap != "" and target.startswith(_PREFIXES[trap]))


def page(trap: str, target: str) -> bytes:
    """Return the HTML that a trap shows at a path; `belongs` must hold."""
    title, links = _WRITERS[trap](target)
    anchors = "".join(f'<li><a href="{_escape(link)}">{_escape(link)}</a></li>' for link in links)
    return (
        f"<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>{_escape(title)}</title>"
        f"</head><body><h1>{_escape(title)}</h1><ul>{anchors}</ul></body></html>\n"
    ).encode("utf-8", "replace")


def _escape(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _calendar(target: str) -> tuple[str, list[str]]:
    parts = target.partition("?")[0].removesuffix(".html").split("/")
    try:
        months = int(parts[2][:6]) * 12 + int(parts[3][:3]) - 1
    except (IndexError, ValueError):
        months = 2026 * 12
    around = (divmod(months + step, 12) for step in (-1, 1, 12))
    links = [f"/calendar/{year}/{month + 1:02}.html" for year, month in around]
    return f"Events of {months // 12}-{months % 12 + 1:02}", links


def _loop(target: str) -> tuple[str, list[str]]:
    here = target.partition("?")[0].rstrip("/")[:1500]
    return f"Directory {here}", [f"{here}/a/", f"{here}/b/", f"{here}/a/b/"]


def _session(target: str) -> tuple[str, list[str]]:
    fresh = f"{zlib.crc32(target.encode('utf-8', 'replace')):08x}"
    return f"Your visit {fresh}", [f"/session/{fresh}/{number}.html" for number in range(1, 6)]


def _facets(target: str) -> tuple[str, list[str]]:
    """Offer every value of every facet on top of what is chosen, which never stops growing in the
    order of its parameters, as carelessly built shops do."""
    query = target.partition("?")[2][:1000]
    links = [
        f"/shop/list?{query}&{name}={value}" if query else f"/shop/list?{name}={value}"
        for name, values in _FACETS.items()
        for value in values
    ]
    return f"Products, {query.count('=')} filters", links


def _soft404(target: str) -> tuple[str, list[str]]:
    number = zlib.crc32(target.encode("utf-8", "replace"))
    return "Page not found", ["/", f"/missing/{number}.html", f"/missing/{number // 2}.html"]


_WRITERS: Final[dict[str, Callable[[str], tuple[str, list[str]]]]] = {
    "calendar": _calendar,
    "loop": _loop,
    "session": _session,
    "facets": _facets,
    "soft404": _soft404,
}
