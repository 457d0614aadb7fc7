"""Every URL filter and every processor of ours keeps the promises of its contract."""

import asyncio
from collections.abc import Sequence

import pytest

from gossamer.expressions.contract import TaskGate, UrlFilter, VisitGate
from gossamer.frontier.traps.likeness import LearntTemplates
from gossamer.frontier.traps.watch import LearntTraps, TrapSheet
from gossamer.parsing.contract import Processor
from gossamer.parsing.feeds import FeedLinks, SitemapLinks
from gossamer.parsing.filters import (
    ConstraintFilter,
    ConstraintSheet,
    ExpressionFilter,
    ExpressionSheet,
    PatternFilter,
    PatternSheet,
)
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.parsing.other_links import CssLinks, CssLinksSheet, TextLinks
from gossamer.parsing.scope import NoiseFilter, NoiseSheet, SchemeFilter, ScopeFilter, ScopeSheet
from gossamer.parsing.statistics import ImageStatistics, TagCounter, TagCounterSheet
from gossamer.testing.parsing import check_gate_filter, check_processor, check_url_filter
from gossamer.testing.storage import visit
from gossamer.values.task import Task

SEED = "https://www.example.co.uk/docs/index.html"
HOME = Task(SEED, host="www.example.co.uk", depth=1)
SAME_HOST = ["http://www.example.co.uk/", "https://www.example.co.uk:8443/docs/a?b=c"]
SAME_DOMAIN = ["https://example.co.uk/", "http://a.b.example.co.uk/x"]
ELSEWHERE = [
    "https://www.other.co.uk/docs/",
    "http://co.uk/",
    "http://127.0.0.1/",
    "https://www.example.co.uk.evil.test/",
]

FILTERS: dict[str, tuple[UrlFilter, list[str], list[str]]] = {
    "page": (ScopeFilter(ScopeSheet(scope="page", seeds=(SEED,))), [SEED], [*SAME_HOST, *SAME_DOMAIN, *ELSEWHERE]),
    "prefix": (
        ScopeFilter(ScopeSheet(scope="prefix", seeds=(SEED,))),
        [SEED, "http://www.example.co.uk/docs/", SAME_HOST[1]],
        [SAME_HOST[0], "https://www.example.co.uk/docs", "https://www.example.co.uk/docsx/", *SAME_DOMAIN, *ELSEWHERE],
    ),
    "host": (ScopeFilter(ScopeSheet(seeds=(SEED,))), [SEED, *SAME_HOST], [*SAME_DOMAIN, *ELSEWHERE]),
    "domain": (
        ScopeFilter(ScopeSheet(scope="domain", seeds=(SEED,))),
        [SEED, *SAME_HOST, *SAME_DOMAIN],
        ELSEWHERE,
    ),
    "any": (ScopeFilter(ScopeSheet(scope="any")), [SEED, *SAME_DOMAIN, *ELSEWHERE], []),
    "scheme": (SchemeFilter(), [SEED, *SAME_HOST], ["ftp://a.test/", "httpsx://a.test/", "gopher://a.test/1"]),
    "patterns": (
        PatternFilter(PatternSheet(include=(r"/docs/", r"\.html$"), exclude=(r"\?",))),
        [SEED, "https://www.other.co.uk/docs/"],
        ["https://www.other.co.uk/", "https://www.other.co.uk/docs/?a"],
    ),
    "no patterns": (PatternFilter(), [SEED, *ELSEWHERE], []),
    "constraints": (
        ConstraintFilter(ConstraintSheet(only=("uk.co.example.*",), never=("uk.co.example.b.+",))),
        [SEED, *SAME_HOST, SAME_DOMAIN[0]],
        [SAME_DOMAIN[1], *ELSEWHERE],
    ),
    "no constraints": (ConstraintFilter(), [SEED, *ELSEWHERE], []),
    "noise": (NoiseFilter(), [SEED, *ELSEWHERE], ["https://ad.doubleclick.net/x", "http://www.facebook.com/tr?id=1"]),
    "noise kept": (NoiseFilter(NoiseSheet(drop=False)), [SEED, "https://ad.doubleclick.net/x"], []),
    "requisites": (ScopeFilter(ScopeSheet(seeds=(SEED,), requisites=True)), [SEED, *SAME_HOST], ELSEWHERE),
    "expressions": (
        ExpressionFilter(ExpressionSheet(follow=("domain(uk.co.example.*)", "not query or depth > 9"))),
        [SEED, *SAME_DOMAIN],
        [SAME_HOST[1], *ELSEWHERE],
    ),
    "no expressions": (ExpressionFilter(), [SEED, *ELSEWHERE], []),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filter(name: str) -> None:
    rule, passes, refuses = FILTERS[name]
    check_url_filter(rule, passes, refuses, HOME)
    check_url_filter(rule, passes, refuses, HOME)  # and the same once its caches are warm


TASKS = [Task("http://a.test/x", host="a.test", depth=1, relation="a href"), Task("http://b.test/", host="b.test")]


class _NothingKept:
    """A ledger in which nothing was learnt."""

    def counters(self) -> dict[str, int]:
        return {}

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        return [None for _ in hosts]


@pytest.mark.parametrize("gate", ["schedule", "fetch"])
def test_filters_of_tasks(gate: TaskGate) -> None:
    rule = ExpressionFilter(ExpressionSheet(schedule=("host(a.test)",), fetch=("depth > 0",)))
    check_gate_filter(rule, gate, TASKS[:1], TASKS[1:])
    check_gate_filter(ConstraintFilter(ConstraintSheet(only=("test.a",))), gate, TASKS[:1], TASKS[1:])
    check_gate_filter(LearntTraps(), gate, TASKS, [])
    confirmed = LearntTraps(TrapSheet(confirmed=("a.test 0 /x/**",)))
    confirmed.template, confirmed.ledger = LearntTemplates(), _NothingKept()  # type: ignore[assignment]  # all that is asked
    asyncio.run(confirmed.start())
    check_gate_filter(
        confirmed, gate, TASKS, [Task("http://a.test/x/1", "a.test"), Task("http://a.test/x/y/z", "a.test")]
    )


@pytest.mark.parametrize("gate", ["parse", "expand", "store"])
def test_filters_of_visits(gate: VisitGate) -> None:
    rule = ExpressionFilter(ExpressionSheet(parse=("size < 9",), expand=("size < 9",), store=("size < 9",)))
    check_gate_filter(rule, gate, [visit(body=b"short")], [visit("http://a.test/long", body=b"longer than that")])


PAGES = (
    b'<link rel=next href=/n><a href="a.html">A</a><a rel=nofollow href=b>B</a>',
    b"<base href=/x/><area href=c><iframe src=d></iframe><meta http-equiv=refresh content='0;url=e'>",
    b"<div>" * 9_000 + b"<a href=deep>",
    b"\xff\xfe<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x00u\x00>\x00",
    b"",
)


@pytest.mark.parametrize("sheet", [HtmlLinksSheet(), HtmlLinksSheet(anchors=True, requisites=True)], ids=str)
def test_html_links(sheet: HtmlLinksSheet) -> None:
    check_processor(HtmlLinks(sheet), [visit(body=page) for page in PAGES])


DOCUMENTS = (
    *PAGES,
    b"<rss><channel><link>http://a.test/</link></channel></rss>",
    b"<urlset><url><loc>http://a.test/1</loc></url></urlset>",
    b"p { background: url(a.png) }",
    b"see http://a.test/x",
    b"GIF89a\x01\x00\x01\x00\x00\x00\x00",
)
PROCESSORS = [
    CssLinks(CssLinksSheet(requisites=True)),
    FeedLinks(),
    ImageStatistics(),
    SitemapLinks(),
    TagCounter(TagCounterSheet(items=True)),
    TextLinks(),
]


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda one: type(one).__name__)
def test_processor(processor: Processor) -> None:
    check_processor(processor, [visit(body=document) for document in DOCUMENTS])
