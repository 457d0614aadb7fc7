"""The auditor's one picture: importance gathered over the crawl, and freshness below it, as SVG.

Place in the flow: the command line writes it to a file. Written by hand, so that it needs nothing;
it explains itself in any browser, in light and dark.
"""

from __future__ import annotations

from html import escape
from typing import Final

from gossamer.simweb.audit.report import Audit

WIDTH: Final = 720
HEIGHT: Final = 560
LEFT: Final = 60
RIGHT: Final = 20
TOP: Final = 50
UPPER: Final = 280
"""Height of the upper panel."""
LOWER: Final = 110
GAP: Final = 60

_STYLE: Final = (
    "svg{background:#fff;color:#222;font:13px sans-serif}text{fill:currentColor}"
    ".axis{stroke:currentColor;stroke-opacity:.3;fill:none}path{fill:none;stroke-width:2}"
    "@media (prefers-color-scheme:dark){svg{background:#16181c;color:#ddd}}"
)

_CURVES: Final = (
    ("oracle", "knows all", "#888888"),
    ("breadth_first", "breadth-first", "#2f7ed8"),
    ("crawl", "this crawl", "#d8572f"),
)


def to_svg(verdict: Audit) -> str:
    """Return the picture of an audit as a complete SVG document."""
    agent = escape((verdict.agents[0] or "(no user agent)")[:60])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<style>{_STYLE}</style>",
        f'<text x="{LEFT}" y="24" font-size="16">Importance gathered, {agent}</text>',
        _frame(TOP, UPPER, "0", f"{verdict.order.pages:,} pages"),
    ]
    for number, (field, label, colour) in enumerate(_CURVES):
        values: list[float] = getattr(verdict.order, field)
        places = [k / max(1, len(values) - 1) for k in range(len(values))]
        parts.append(_curve(places, values, TOP, UPPER, colour))
        parts.append(_legend(number, label, colour))
    below = TOP + UPPER + GAP
    parts.append(f'<text x="{LEFT}" y="{below - 12}">Copies that are current</text>')
    parts.append(_frame(below, LOWER, "0 s", f"{verdict.seconds:,.1f} s"))
    seconds = verdict.freshness.seconds
    whole = (seconds[-1] if seconds else 0.0) or 1.0
    places = [second / whole for second in seconds]
    parts.append(_curve(places, verdict.freshness.fresh, below, LOWER, "#3a9d5d"))
    parts.append("</svg>\n")
    return "\n".join(parts)


def _frame(top: int, height: int, first: str, last: str) -> str:
    """Draw a panel's axes: shares from 0 to 1 upwards, `first` to `last` along."""
    bottom, right = top + height, WIDTH - RIGHT
    lines = [f'<path class="axis" d="M{LEFT} {top}V{bottom}H{right}"/>']
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * height
        lines.append(f'<path class="axis" d="M{LEFT - 4} {y:.0f}H{LEFT}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{share:.0%}</text>')
    lines.append(f'<text x="{LEFT}" y="{bottom + 18}">{escape(first)}</text>')
    lines.append(f'<text x="{right}" y="{bottom + 18}" text-anchor="end">{escape(last)}</text>')
    return "".join(lines)


def _curve(places: list[float], values: list[float], top: int, height: int, colour: str) -> str:
    """Draw a curve of values (shares of 1) at places (shares of the width)."""
    points = [
        f"{LEFT + place * (WIDTH - LEFT - RIGHT):.1f} {top + (1 - value) * height:.1f}"
        for place, value in zip(places, values, strict=True)
    ]
    return f'<path stroke="{colour}" d="M{"L".join(points)}"/>' if points else ""


def _legend(number: int, label: str, colour: str) -> str:
    x, y = LEFT + 20 + number * 150, TOP + UPPER - 16
    return f'<path stroke="{colour}" d="M{x} {y - 4}h24"/><text x="{x + 30}" y="{y}">{label}</text>'
