"""The auditor's verdict: every judge's findings in one value, as text, as JSON and as a picture.

Place in the flow: the last step of an audit. `audit` reads a log, asks each judge, and returns an `Audit`; the command line prints
it, tests look into it. The picture has importance gathered over the crawl, and freshness below it, as SVG: written by hand, so that
it needs nothing; it explains itself in any browser, in light and dark.
"""

from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from gossamer.simweb.audit.coverage import (
    Coverage,
    Freshness,
    Order,
    Repeats,
    Spending,
    StatedTriples,
    judge_coverage,
    judge_freshness,
    judge_order,
    judge_repeats,
    judge_spending,
    judge_statements,
    read_triples,
)
from gossamer.simweb.audit.trace import Gaps, RequestTrace, RobotsReport, judge_gaps, judge_robots, read_trace
from gossamer.simweb.graph import WebGraph, expected_pages


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The purpose of the crawl, which the log alone cannot tell."""

    seeds: list[str] | None = None
    """Where it began; None for the first page of the web."""
    scope: str = "any"
    depth: int | None = None
    agent: str = ""
    """Judge only requests whose user agent contains this."""
    delay: float = 0.0
    """The least gap between requests to one host, in seconds, that it was told to keep."""
    triples: Path | None = None
    """A CSV file of the triples that it found; None where they are not asked for."""


class Audit(msgspec.Struct, frozen=True):
    """Everything that can be said about a crawl from its server's log."""

    agents: list[str]
    requests: int
    bytes: int
    seconds: float
    """From the start of the first request to the end of the last."""
    statuses: dict[str, int]
    coverage: Coverage
    repeats: Repeats
    robots: RobotsReport
    host: Gaps
    domain: Gaps
    address: Gaps
    order: Order
    freshness: Freshness
    spending: list[Spending]
    statements: StatedTriples | None = None
    """The triples that it found of those that its pages state; None where its triples were not given."""


def audit(path: Path, options: AuditOptions | None = None) -> Audit:
    """Judge the crawl that a request log tells of.

    Raises LogError for a file that is no log or holds no such requests and for one that holds no triples, GraphError for seeds or a
    scope unknown to the web, OSError if the file cannot be read.
    """
    options = options or AuditOptions()
    return judge(read_trace(path, options.agent), options)


def judge(trace: RequestTrace, options: AuditOptions) -> Audit:
    """Judge the requests of a trace; raises GraphError as `audit` does."""
    graph = WebGraph(trace.web)
    # Robots groups go by the crawler's name; a log of several is judged by its first.
    name = trace.agents[int(trace.agent[0])]
    expected = expected_pages(graph, options.seeds, options.scope, options.depth, agent=name)
    codes, counts = np.unique(trace.status, return_counts=True)
    return Audit(
        agents=trace.agents,
        requests=len(trace),
        bytes=int(trace.size.sum()),
        seconds=float(trace.end.max() - trace.start.min()) / 1e6,
        statuses={str(code): int(n) for code, n in zip(codes, counts, strict=True)},
        coverage=judge_coverage(trace, graph, expected),
        repeats=judge_repeats(trace),
        robots=judge_robots(trace),
        host=judge_gaps(trace, "host", options.delay),
        domain=judge_gaps(trace, "domain", options.delay),
        address=judge_gaps(trace, "address", options.delay),
        order=judge_order(trace, graph, expected),
        freshness=judge_freshness(trace, graph),
        spending=judge_spending(trace, graph),
        statements=judge_statements(trace, graph, read_triples(options.triples)) if options.triples else None,
    )


def to_json(verdict: Audit) -> str:
    return msgspec.json.encode(verdict).decode()


def to_text(verdict: Audit) -> str:
    return "\n".join(_lines(verdict)) + "\n"


def _lines(verdict: Audit) -> Iterator[str]:
    rate = verdict.requests / verdict.seconds if verdict.seconds else 0.0
    agents = ", ".join(agent or "(none)" for agent in verdict.agents[:3])
    yield f"Crawler      {agents}"
    yield f"Requests     {verdict.requests:,} in {verdict.seconds:,.1f} s ({rate:,.0f}/s), {verdict.bytes:,} bytes"
    statuses = "  ".join(f"{code}: {count:,}" for code, count in verdict.statuses.items())
    yield f"Statuses     {statuses}"
    coverage, repeats, robots = verdict.coverage, verdict.repeats, verdict.robots
    flaky = f"({coverage.missed_flaky:,} of them flaky), "
    yield f"Coverage     {_found(coverage, 'expected pages')}, {coverage.missed:,} missed {flaky}{coverage.extra:,} extra"
    yield from _examples(coverage.missed_examples, coverage.extra_examples)
    yield (
        f"Repeats      {repeats.pages:,} pages fetched again ({repeats.requests:,} requests), "
        f"{repeats.aliases:,} under a second URL, {repeats.conditional:,} conditional "
        f"({repeats.not_modified:,} not modified)"
    )
    yield (
        f"Robots       {robots.breaches:,} breaches; of {robots.hosts:,} hosts "
        f"{robots.never_asked:,} never asked for robots.txt, {robots.asked_late:,} asked late; "
        f"{robots.delay_breaches:,} requests inside a Crawl-delay"
    )
    yield from (f"  breach {example}" for example in robots.examples)
    for label, gaps in (("host", verdict.host), ("domain", verdict.domain), ("address", verdict.address)):
        measured = "no two requests apart"
        if gaps.shortest is not None:
            measured = f"gaps from {gaps.shortest:.3f} s, median {gaps.median:.3f} s"
        yield (
            f"Per {label:<9}{gaps.keys:,} asked, {measured}, {gaps.below:,} too short, "
            f"{gaps.overlapping:,} overlapping, at most {gaps.most_in_flight:,} in flight"
        )
        yield from (f"  {line}" for line in (gaps.worst if gaps.below or gaps.overlapping else ()))
    if (one := verdict.statements) is not None:
        yield f"Statements   {_found(one, 'triples of these pages')}, {one.missed:,} missed, {one.extra:,} extra"
        yield from _examples(one.missed_examples, map(repr, one.extra_examples))
    order = verdict.order
    yield (
        f"Order        {order.crawl_area:.3f} of an oracle's importance over time; "
        f"breadth-first has {order.breadth_first_area:.3f}"
    )
    if verdict.freshness.fresh:
        yield f"Freshness    {verdict.freshness.fresh[-1]:.1%} of the copies current at the end"
    yield "Spent on"
    for part in verdict.spending:
        share = part.bytes / (verdict.bytes or 1)
        yield f"  {part.what:<27}{part.requests:>9,} requests {part.bytes:>14,} bytes {share:6.1%}"


def _found(one: Coverage | StatedTriples, what: str) -> str:
    share = one.found / one.expected if one.expected else 1.0
    return f"{one.found:,} of {one.expected:,} {what} ({share:.2%})"


def _examples(missed: Iterable[str], extra: Iterable[str]) -> Iterator[str]:
    yield from (f"  missed {one}" for one in islice(missed, 5))
    yield from (f"  extra  {one}" for one in islice(extra, 5))


WIDTH, HEIGHT, LEFT, RIGHT, TOP = 720, 560, 60, 20, 50
UPPER, LOWER, GAP = 280, 110, 60
"""Heights of the panels, and what lies between them."""

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
        x, y = LEFT + 20 + number * 150, TOP + UPPER - 16
        parts.append(f'<path stroke="{colour}" d="M{x} {y - 4}h24"/><text x="{x + 30}" y="{y}">{label}</text>')
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
