"""Reports as one HTML file that loads nothing: tables, and bars as SVG. Every text in it was written by a stranger.

Place in the flow: `gossamer report -f html` writes it. Texts are escaped and shown as a terminal would show them, without
characters that reorder a line; only URLs of the web become links, and the file forbids itself scripts and anything from outside.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from gossamer.query.printing import shown
from gossamer.query.reports import MadeReport, MadeSection

#: Bars of a plot: more are not told apart at a glance.
BARS = 20

#: Pixels: height of a bar with its gap, width of the texts and of the longest bar.
_ROW, _LABEL, _LONGEST = 20, 300, 420

#: Characters of a label.
_LABEL_LETTERS = 44

#: Schemes that a browser may follow: none that runs anything.
_LINK = re.compile(r"https?://[^\s<>\"]{1,2000}\Z")

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.2em; margin-top: 2em } h3 { font-size: 1em; margin-bottom: .3em }
table { border-collapse: collapse; font-size: .9em } td, th { padding: .2em .7em; text-align: left; vertical-align: top;
border-bottom: 1px solid #ddd; overflow-wrap: anywhere } td.number { text-align: right; white-space: nowrap }
.more { color: #666 } svg text { font: 12px system-ui, sans-serif; fill: #222 } svg rect { fill: #4a78b5 }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #ddd }
svg text { fill: #ddd } td, th { border-color: #444 }
a { color: #8ab4f8 } }
"""


def page_of(reports: Sequence[MadeReport], crawl: str, when: str) -> str:
    """The file.

    Args:
        reports: in the order in which they stand.
        when: the time at which it was asked, for people.
    """
    title = f"{', '.join(report.name for report in reports)}: {shown(crawl)}"
    body = "".join(part for report in reports for part in _report(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">\n'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{_text(shown(crawl))}</h1><p>{_text(when)}</p>\n{body}</body></html>\n"
    )


def _report(report: MadeReport) -> Iterable[str]:
    yield f'<section id="{_text(report.name)}"><h2>{_text(report.name)}</h2><p>{_text(report.doc)}</p>\n'
    for section in report.sections:
        yield f"<h3>{_text(section.title)}</h3>\n{svg_of(section)}{_table(section)}"
    yield "</section>\n"


def _table(section: MadeSection) -> str:
    if not section.rows:
        return '<p class="more">none</p>\n'
    head = "".join(f"<th>{_text(name)}</th>" for name in section.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in section.rows)
    left = section.total - len(section.rows)
    more = f'<p class="more">and {left:,} more</p>\n' if left else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>\n{more}"


def _cell(value: Any) -> str:
    text = _text(shown(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{text}</td>'
    if isinstance(value, str) and _LINK.match(value) and value.isprintable():
        return f'<td><a rel="noreferrer nofollow" href="{_text(value)}">{text}</a></td>'
    return f"<td>{text}</td>"


def svg_of(section: MadeSection) -> str:
    """The bars of a section; nothing where it has none."""
    if section.plot is None or not section.rows:
        return ""
    labels, values = section.columns.index(section.plot.label), section.columns.index(section.plot.value)
    bars = [(shown(row[labels]) or "none", float(row[values] or 0)) for row in section.rows[:BARS]]
    longest = max(value for _, value in bars)
    if longest <= 0:
        return ""
    width, height = _LABEL + _LONGEST + 110, _ROW * len(bars)
    drawn = "".join(_bar(number, label, value, longest) for number, (label, value) in enumerate(bars))
    said = _text(f"{section.title}: {section.plot.value} by {section.plot.label}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{said}">{drawn}</svg>\n'
    )


def _bar(number: int, label: str, value: float, longest: float) -> str:
    top, length = number * _ROW, max(1.0, value / longest * _LONGEST)
    short = label if len(label) <= _LABEL_LETTERS else f"{label[: _LABEL_LETTERS - 1]}…"
    return (
        f'<text x="{_LABEL - 8}" y="{top + 14}" text-anchor="end"><title>{_text(label)}</title>{_text(short)}</text>'
        f'<rect x="{_LABEL}" y="{top + 3}" width="{length:.1f}" height="{_ROW - 6}"/>'
        f'<text x="{_LABEL + length + 6:.1f}" y="{top + 14}">{value:,.10g}</text>'
    )


def _text(text: str) -> str:
    return escape(text, quote=True)
