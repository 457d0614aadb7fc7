"""The filter language: what expressions mean, what is said of those that mean nothing, and how a page's links are judged."""

import re
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.engine.errors import SettingError, UnknownName
from gossamer.expressions.compiling import Expression, explain, gates_of
from gossamer.expressions.contract import Predicate
from gossamer.expressions.predicates import SHIPPED, words_of
from gossamer.expressions.syntax import ARROW, MAX_NESTING, ExpressionError, parse
from gossamer.parsing.filters import DomainConstraint, ExpressionFilter, ExpressionSheet, by_gate
from gossamer.testing.storage import visit
from gossamer.values.task import Task
from gossamer.values.visit import Link

PAGE = Task("http://a.test/", host="a.test", depth=1)


def holds(source: str, url: str = "http://a.test/", relation: str = "a href", depth: int = 2) -> bool:
    """Whether an expression lets this link of a page pass."""
    page = Task("http://a.test/", host="a.test", depth=depth - 1)
    return list(Expression(source, "follow").judge_links([Link(url, relation)], page)) == [""]


def said(source: str, gate: str = "follow") -> str:
    with pytest.raises(ExpressionError) as raised:
        Expression(source, gate)  # type: ignore[arg-type]
    return str(raised.value)


@pytest.mark.parametrize(
    ("source", "passes", "refuses"),
    [
        ("scheme(http, FTP)", ["http://a.test/", "ftp://a.test/"], ["https://a.test/"]),
        ("scheme != https", ["http://a.test/"], ["https://a.test/"]),
        ("host(*.a.test)", ["http://x.a.test/", "http://x.y.a.test:8/"], ["http://a.test/", "http://xa.test/"]),
        ("host(A.test)", ["http://a.test:80/x"], ["http://b.test/?a.test"]),
        ("domain(test.a.+, test.b)", ["http://x.a.test/", "http://b.test/"], ["http://a.test/", "http://x.b.test/"]),
        ('path("/docs/*")', ["http://a.test/docs/x?y/z"], ["http://a.test/docs/x/y", "http://a.test/x/docs/y"]),
        ('path("/docs/**")', ["http://a.test/docs/x/y", "http://a.test/docs/"], ["http://a.test/docs"]),
        ("path(**/v?/*.html)", ["http://a.test/x/v1/y.html"], ["http://a.test/v1/x/y.html", "http://a.test/v/y.html"]),
        ("path('/a.b')", ["http://a.test/a.b"], ["http://a.test/aXb"]),
        (
            "extension(pdf, .ZIP)",
            ["http://a.test/x.PDF", "http://a.test/x.zip?q"],
            ["http://a.test/pdf", "http://a.test/.pdf"],
        ),
        ("extension", ["http://a.test/x.y"], ["http://a.test/x.y/z"]),
        ("query", ["http://a.test/?"], ["http://a.test/"]),
        ("query(page=3)", ["http://a.test/?a&page=3"], ["http://a.test/?page=33", "http://a.test/page=3"]),
        ("query(page)", ["http://a.test/?page", "http://a.test/?a=1&page=4"], ["http://a.test/?pages=1"]),
        ("length <= 20", ["http://a.test/"], ["http://a.test/0123456"]),
        ("segments > 2", ["http://a.test/a/b/c"], ["http://a.test//a//b/"]),
        ("parameters(2)", ["http://a.test/?a&b=1&"], ["http://a.test/?a", "http://a.test/"]),
        ("repeats > 2", ["http://a.test/a/b/a/b/a"], ["http://a.test/a/b/a/b", "http://a.test/4/4/4/4"]),
        (r'url matches "\.test/[0-9]+$"', ["http://a.test/12"], ["http://a.test/x"]),
        (r"matches('x', 'a\'b')", ["http://a.test/x", "http://a.test/a'b"], ["http://a.test/y"]),
        ("path matches ^/x and query matches y", ["http://a.test/x?y"], ["http://a.test/y?x"]),
        ("not (scheme = ftp or host(b.test))", ["http://a.test/"], ["ftp://a.test/", "http://b.test/"]),
        ("scheme = ftp or host(b.test) and query", ["ftp://a.test/", "http://b.test/?x"], ["http://b.test/"]),
        ("NOT query AND Host(a.test)", ["http://a.test/"], ["http://a.test/?x"]),
    ],
)
def test_predicates_mean_what_they_say(source: str, passes: list[str], refuses: list[str]) -> None:
    assert [url for url in passes if not holds(source, url)] == []
    assert [url for url in refuses if holds(source, url)] == []


def test_the_depth_of_a_link_is_its_pages_and_one_more_and_a_redirect_keeps_it() -> None:
    assert holds("depth = 2")
    assert not holds("depth < 2")
    assert holds("depth < 2", relation="redirect")
    rule, links = Expression("depth < 2", "follow"), [Link("http://a.test/x"), Link("http://a.test/y", "redirect")]
    assert list(rule.judge_links(links, PAGE)) == ["filter: depth < 2", ""]


def test_facts_of_the_link_are_read_from_the_link() -> None:
    links = [Link("http://a.test/x", "img src"), Link("http://a.test/x", "a href", "More", nofollow=True)]
    for source, expected in (("relation(img*)", [True, False]), ("nofollow", [False, True])):
        assert [not one for one in Expression(source, "follow").judge_links(links, PAGE)] == expected
    assert [bool(one) for one in Expression('anchor matches "(?i)more"', "follow").judge_links(links, PAGE)] == [
        True,
        False,
    ]


def test_tasks_and_visits_are_judged_by_what_is_known_of_them() -> None:
    rule = ExpressionFilter(
        ExpressionSheet(
            schedule=("depth <= 3",),
            fetch=("relation(a*)", "not extension(zip)"),
            parse=("mime(text/*)", "status >= 200 and status < 300"),
            store=("size < 1kB", "outcome = ok"),
        )
    )
    tasks = [Task("http://a.test/x.zip", "a.test", 4), Task("http://a.test/", "a.test", 3, relation="a href")]
    assert list(rule.judge_tasks("schedule", tasks)) == ["filter: depth <= 3", ""]
    assert list(rule.judge_tasks("fetch", tasks)) == ["filter: relation(a*)", ""]
    assert rule.judge_visit("parse", visit()) == ""
    assert rule.judge_visit("store", visit()) == ""
    assert rule.judge_visit("store", visit(body=b"x" * 1000)) == "filter: size < 1kB"
    assert rule.judge_visit("expand", visit()) == ""


def test_the_rule_names_the_part_that_refused() -> None:
    rule = Expression("host(a.test) and not extension(pdf) and (query or depth < 9)", "follow")
    links = [Link("http://b.test/"), Link("http://a.test/x.pdf"), Link("http://a.test/")]
    assert list(rule.judge_links(links, PAGE)) == ["filter: host(a.test)", "filter: not extension(pdf)", ""]


@pytest.mark.parametrize(
    ("source", "url", "expected"),
    [
        ("host(a.test) and not extension(pdf)", "http://a.test/x.pdf", (False, "not extension(pdf)")),
        ("host(b.test) or extension(pdf)", "http://a.test/x.pdf", (True, "extension(pdf)")),
        ("host(b.test) or query", "http://a.test/", (False, "host(b.test) or query")),
        ("not (host(a.test) or query)", "http://a.test/", (False, "not host(a.test)")),
        ("not (host(b.test) or query)", "http://a.test/", (True, "not (host(b.test) or query)")),
    ],
)
def test_an_explanation_is_the_smallest_part_that_decides(source: str, url: str, expected: tuple[bool, str]) -> None:
    assert explain(Expression(source, "follow").tree, {"url": url}) == expected


@pytest.mark.parametrize(
    ("source", "message", "place"),
    [
        ("hosst(a.test)", "no predicate 'hosst'; did you mean 'host'?", 0),
        ("depth < 3 and extensoin(pdf)", "no predicate 'extensoin'; did you mean 'extension'?", 14),
        ("", "expected a predicate, 'not' or '(', not the end", 0),
        ("query or", "expected a predicate, 'not' or '(', not the end", 8),
        ("(query", "expected ')'", 6),
        ("query)", "expected 'and', 'or' or the end, not ')'", 5),
        ("query query", "expected 'and', 'or' or the end, not 'query'", 6),
        ("query && query", "'&' has no meaning here; write 'and'", 6),
        ("! query", "'!' has no meaning here; write 'not'", 0),
        ("host('a", "a quote ' that is not closed", 5),
        ("host(a b)", "expected ',' or ')'", 7),
        ("host()", "expected a value, not ')'", 5),
        ("host", "'host': takes at least one value in parentheses", 0),
        ("host < 3", "'host' is not a number; it has to be 'host(VALUE, ...)' or 'host matches RE2'", 5),
        ("depth", "'depth' has to be 'depth(VALUE, ...)' or 'depth <= NUMBER'", 0),
        ("depth < x", "'x' is not a quantity", 8),
        ("depth matches x", "'depth' is not a text", 0),
        ("length < 3 parsecs", "expected 'and', 'or' or the end, not 'parsecs'", 11),
        ('url matches "(?=x)"', "'(?=x)' is not an RE2 pattern", 12),
        ("domain(hu..bme)", "'hu..bme' is not a domain constraint; write the host backwards", 0),
        ("path(docs)", "write /docs or **/docs", 0),
        ("nofollow(x)", "takes no value", 0),
    ],
)
def test_an_error_points_at_the_place_and_says_what_would_do(source: str, message: str, place: int) -> None:
    reason, _, line = said(source).rpartition("; here: ")
    assert message in reason
    assert line == f"{source[:place]}{ARROW}{source[place:]}"


def test_a_fact_is_refused_where_it_is_not_known() -> None:
    assert "'mime' is not known at gate 'fetch'; it is at: body, parse, expand, store" in said(
        "mime(text/html)", "fetch"
    )
    assert "'anchor' is not known at gate 'store'; it is at: follow" in said("anchor matches x", "store")
    assert said("query and mime(text/html)", "follow").endswith(f"; here: query and {ARROW}mime(text/html)")


def test_a_long_expression_shows_the_surroundings_of_the_place() -> None:
    source = " and ".join(["query"] * 100 + ["quarry"])
    reason, _, line = said(source).rpartition("; here: ")
    assert "did you mean 'query'?" in reason
    assert line.partition(ARROW)[2].startswith("quarry")
    assert len(line) < 120


def test_no_expression_exhausts_anything() -> None:
    assert "within each other" in said("(" * (MAX_NESTING + 1))
    assert "within each other" in said("not " * (MAX_NESTING + 1) + "query")
    assert "characters; at most" in said("query or " * 10_000)
    assert holds("not " * MAX_NESTING + "host(a.test)")
    assert holds(" or ".join(["query"] * 1500 + ["host(a.test)"]))


def test_expressions_of_the_command_line_name_their_gates() -> None:
    assert by_gate(["query", "Store: size > 1", "fetch:host(a:b)", 'url matches "a:b"']) == {
        "follow": ("query", 'url matches "a:b"'),
        "store": ("size > 1",),
        "fetch": ("host(a:b)",),
    }
    with pytest.raises(SettingError, match=r"no gate 'fletch' .*did you mean 'fetch'"):
        by_gate(["fletch: query"])


def test_a_changed_sheet_is_taken_and_a_bad_one_changes_nothing() -> None:
    rule = ExpressionFilter(ExpressionSheet(follow=("query",)))
    before, rule.sheet = rule.sheet, ExpressionSheet(follow=("quarry",))
    with pytest.raises(SettingError, match="did you mean 'query'"):
        rule.changed(before)
    assert list(rule.judge([Link("http://a.test/")], PAGE)) == ["filter: query"]
    rule.sheet = ExpressionSheet()
    rule.changed(before)
    assert list(rule.judge([Link("http://a.test/")], PAGE)) == [""]


def test_a_predicate_of_ones_own_is_a_word_like_any_other() -> None:
    words = {**SHIPPED, "shout": Predicate(fact="url", doc="", test=lambda _: lambda url: url.isupper())}
    assert list(Expression("not shout", "follow", words).judge_links([Link("A"), Link("a")], PAGE)) == [
        "filter: not shout",
        "",
    ]


class Entry(NamedTuple):
    """An entry point of another package, as far as it is looked at."""

    name: str
    value: str
    loaded: object

    def load(self) -> object:
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded


def test_words_of_other_packages_come_by_entry_point_and_hide_none_of_ours() -> None:
    mine = Predicate(fact="url", doc="", test=lambda values: lambda url: values[0] in url)
    words = words_of([cast("Any", Entry("Holds", "theirs:holds", mine))])
    rule = Expression("holds(x) and host(a.test)", "follow", words)
    assert list(rule.judge_links([Link("http://a.test/x"), Link("http://a.test/")], PAGE)) == ["", "filter: holds(x)"]
    for entry, message in (
        (Entry("host", "theirs:host", mine), "'host' of theirs:host has the name of one that is there already"),
        (Entry("holds", "theirs:holds", len), "'holds' is not a gossamer Predicate: theirs:holds"),
        (Entry("holds", "theirs:holds", ImportError("no module")), "'holds' cannot be loaded: no module"),
    ):
        with pytest.raises(UnknownName, match=re.escape(message)):
            words_of([cast("Any", entry)])


@pytest.mark.parametrize(
    ("constraint", "matching", "others"),
    [
        ("hu.bme", ["bme.hu", "bme.hu."], ["aut.bme.hu", "hu", "xbme.hu", "bme.hu.org"]),
        ("HU.Bme.+", ["aut.bme.hu", "a.b.bme.hu"], ["bme.hu", "xbme.hu"]),
        ("hu.bme.*", ["bme.hu", "aut.bme.hu"], ["hu", "xbme.hu", "bme.hu.evil"]),
        ("hu.*", ["hu", "a.hu"], ["en.wikipedia.org"]),
        ("de.bücher.*", ["xn--bcher-kva.de"], ["bücher.de"]),
        ("*", ["a.test", "127.0.0.1"], []),
    ],
)
def test_domain_constraints_are_those_of_the_thesis(constraint: str, matching: list[str], others: list[str]) -> None:
    rule = DomainConstraint(constraint)
    assert [host for host in matching if not rule.holds(host)] == []
    assert [host for host in others if rule.holds(host)] == []


@pytest.mark.parametrize(
    "text", ["", ".", "hu..bme", "hu.*.bme", "hu.bme/x", "hu bme", "hu.b*me", "http://a.test", "+.hu"]
)
def test_what_is_no_domain_constraint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="backwards"):
        DomainConstraint(text)


LEAVES = st.sampled_from(("query", "depth < 2", "depth > 5", "extension(x)", "nofollow", "relation(a*)", "length > 15"))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda one: f"not ({one})"),
        st.lists(inner, min_size=2, max_size=4).map(lambda those: f"({' and '.join(f'({one})' for one in those)})"),
        st.lists(inner, min_size=2, max_size=4).map(lambda those: f"({' or '.join(f'({one})' for one in those)})"),
    ),
    max_leaves=10,
)
LINKS = st.builds(
    Link,
    st.sampled_from(("http://a.test/", "http://a.test/?x", "http://a.test/a.x", "http://b.test/a.x?y")),
    st.sampled_from(("a href", "img src", "redirect")),
    nofollow=st.booleans(),
)


@given(source=TREES, links=st.lists(LINKS, max_size=5), depth=st.integers(0, 7))
def test_a_pages_links_are_judged_as_each_would_be_alone(source: str, links: list[Link], depth: int) -> None:
    rule = Expression(source, "follow")
    page = Task("http://a.test/", host="a.test", depth=depth)
    for link, verdict in zip(links, rule.judge_links(links, page), strict=True):
        facts = {
            "url": link.url,
            "depth": depth + (link.relation not in ("redirect", "img src")),
            "relation": link.relation,
            "nofollow": link.nofollow,
        }
        names = {
            "query": "'?' in url",
            "extension(x)": "url.endswith(('.x', '.x?y'))",
            "relation(a*)": "relation[0] == 'a'",
        }
        python = source
        for name, code in {**names, "length": "len(url)"}.items():
            python = python.replace(name, code)
        expected = eval(python, {}, facts)
        assert (verdict == "") == expected
        assert explain(rule.tree, facts)[0] == expected


@given(st.text(alphabet="notadr()'\"<=, \\hsquey3*.", max_size=40))
def test_any_text_is_an_expression_or_an_error_with_a_place_in_it(source: str) -> None:
    error: ExpressionError | None = None
    try:
        parse(source, SHIPPED)
    except ExpressionError as raised:
        error = raised
    assert error is None or (0 <= error.position <= len(source) and "\n" not in str(error))


def test_every_predicate_can_stand_at_some_gate() -> None:
    assert [name for name, predicate in SHIPPED.items() if not gates_of(predicate.fact)] == []


def test_the_guide_names_every_predicate() -> None:
    guide = Path(__file__).parents[3].joinpath("docs", "filters.md").read_text(encoding="utf-8")
    assert [name for name in SHIPPED if f"`{name}" not in guide] == []


def test_given_values_stand_for_lists_and_numbers_and_are_never_anything_but_values() -> None:
    strange = {"list": ("a b", "or", "x) or host(*", '"'), "least": ("2",), "end": (r"\.pdf$",)}
    for source in ("path($list)", "length >= $least and not url matches $end", "query($list, $least)"):
        Expression(source.replace("path($list)", "host($list)"), "follow", given=strange)
    assert not holds("host(b.test)")
    named = Expression(
        "host($hosts) and length > $least", "follow", given={"hosts": ("b.test", "*.test"), "least": ("9",)}
    )
    assert list(named.judge_links([Link("http://a.test/"), Link("http://a.org/")], PAGE)) == [
        "",
        "filter: host($hosts)",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("host($hots)", "no value is given under the name 'hots'; did you mean 'hosts'?"),
        ("length > $hosts", "'a.test' is not a quantity"),
        ("$hosts", "expected a predicate"),
        (
            " or ".join(["host($many)"] * 3),
            "the lists that it names hold more than 5000 values or 64000 characters together",
        ),
        ("host($long)", "the lists that it names hold more than 5000 values or 64000 characters together"),
    ],
)
def test_a_value_that_is_not_given_or_does_not_fit_is_told_with_its_place(source: str, message: str) -> None:
    lists = {"hosts": ("a.test", "b.test"), "many": tuple(map(str, range(2_000))), "long": ("*a?" * 100,) * 300}
    with pytest.raises(ExpressionError, match=re.escape(message)):
        Expression(source, "follow", given=lists)
