"""What expressions ask of a whole page: text, header fields, links, types and keywords, at the gates `expand` and `store`."""

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gossamer.cli.main import commands
from gossamer.documents.document import Document
from gossamer.documents.terms import keywords
from gossamer.engine.errors import SettingError
from gossamer.expressions.compiling import Expression, facts_of, keep_document
from gossamer.expressions.contract import VisitGate
from gossamer.expressions.predicates import SHIPPED, compile_words
from gossamer.expressions.syntax import ExpressionError
from gossamer.parsing.filters import ExpressionFilter, ExpressionSheet
from gossamer.testing.storage import visit
from gossamer.values.visit import Link, Visit

CLINIC = b"""<html><head><title>Heart disease: advice for patients</title>
<script type="application/ld+json">{"@context": "https://schema.org", "@type": "MedicalWebPage", "name": "Heart"}</script>
</head><body><p>Heart disease is the subject of this page of our hospital. Patients with heart disease find here what doctors
and nurses of the hospital say about their health, and how the patients may live with the disease.</p></body></html>"""
CARS = b"""<html><head><title>Used cars</title></head><body><p>We sell cars that were used with care, and repair engines of
cars in our own garage, whatever the age of the engines may be. The garage is open all the week.</p></body></html>"""

#: The relevance and the traversal of the manual's crawler for health care.
RELEVANT = 'keywords(health, "health care", patient*, hospital*, doctor*, nurs*, medic*, disease*) >= 3'
FOLLOWED = "links >= 2 and text(health, medicine, patients)"


def page(body: bytes, *, links: int = 0, refused: int = 0, mime: str = "text/html", title: str = "") -> Visit:
    """A page as the gates `expand` and `store` see it."""
    made = [Link(f"http://a.test/{number}") for number in range(links + refused)]
    return msgspec.structs.replace(
        visit(body=body), mime=mime, title=title, links=tuple(made[:links]), refused=tuple(made[links:])
    )


@pytest.mark.parametrize("gate", ["expand", "store"])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('text("HEART  disease")', True),
        ("text(hear)", False),
        ("text(cars, nurses)", True),
        ('text matches "doctors\\s+and"', True),
        ("text >= 100 and text < 1000", True),
        ("text(MedicalWebPage)", False),
        ("header(content-type)", True),
        ("header(etag, server)", False),
        ("header(Content-Type) matches ^text/", True),
        ("header(etag) matches .", False),
        ("links = 3", True),
        ("type(MedicalWebPage)", True),
        ("type(http*://schema.org/MedicalWebPage)", True),
        ("type(WebPage)", False),
        ("type(*WebPage)", True),
        ("type", True),
        ("keywords(engine, disease)", True),
        ('keywords("Heart disease")', True),
        ("keywords(hospi*)", True),
        ("keywords(this, with)", False),
        ("keywords(heart, disease, garage) >= 2", True),
        ("not keywords(heart, garage) > 1", True),
    ],
)
def test_an_expression_asks_what_a_page_says(gate: VisitGate, source: str, expected: bool) -> None:
    judged = Expression(source, gate).judge(page(CLINIC, links=2, refused=1))
    assert (judged == "") is expected


@given(
    st.lists(
        st.text("aBk\u212as\u017f\u00df\u6f22 -", min_size=1, max_size=4).filter(str.strip), min_size=1, max_size=6
    ),
    st.text("abKks\u017f\u6f22 -\n\u00df", max_size=30),
)
def test_one_of_many_words_stands_where_any_of_them_does_alone(words: list[str], text: str) -> None:
    together = SHIPPED["text"].test
    assert together is not None
    assert together(tuple(words))(text) is any(together((word,))(text) for word in words)


@pytest.mark.parametrize(
    "source", ["text(needle*)", "text('')", "text(a, *)", "language(e*)", "extension(jp*)", "header(x-*)"]
)
def test_a_pattern_that_would_never_fit_is_refused(source: str) -> None:
    with pytest.raises(SettingError, match=r"no pattern is taken here|at least one word"):
        Expression(source, "store")


@pytest.mark.parametrize("mime", ["text/html", "text/plain"])
def test_a_word_at_the_end_of_a_long_text_is_found(mime: str) -> None:
    body = b"<p>" + b"many words " * 50_000 + b"needle"
    assert Expression("text(needle)", "expand").judge(page(body, mime=mime)) == ""


def test_a_list_of_words_is_looked_for_at_once() -> None:
    """A word by itself costs 2 ms to compile, and one search of every page."""
    words = [f"{number:05d}" for number in range(5_000)]
    assert len(compile_words(words)) < 20
    with pytest.raises(ValueError, match="is too long; at most 1024 bytes a word"):
        compile_words(["a", "b" * 1_025])


def test_the_crawler_for_health_care_keeps_what_is_relevant_and_follows_what_leads_there() -> None:
    rule = ExpressionFilter(ExpressionSheet(store=(RELEVANT,), expand=(FOLLOWED,)))
    clinic, cars = page(CLINIC, links=2), page(CARS, links=9)
    assert rule.judge_visit("store", clinic) == ""
    assert rule.judge_visit("store", cars) == f"filter: {RELEVANT}"[: len("filter: ") + 80]
    assert rule.judge_visit("expand", clinic) == ""
    assert rule.judge_visit("expand", cars) == "filter: text(health, medicine, patients)"
    assert rule.judge_visit("expand", page(CLINIC, links=1)) == "filter: links >= 2"


def test_plain_text_has_a_text_and_a_picture_has_none() -> None:
    rule = Expression("text(hospital)", "store")
    assert rule.judge(page(b"the hospital", mime="text/plain")) == ""
    assert rule.judge(page(b"the hospital", mime="image/png")) != ""
    assert Expression("type or keywords(*)", "store").judge(page(b"\x89PNG\r\n", mime="image/png")) != ""


def test_a_page_is_never_judged_by_the_text_of_another() -> None:
    rule = Expression("text(hospital)", "store")
    assert [rule.judge(page(body)) == "" for body in (CLINIC, CARS, CLINIC, CARS)] == [True, False, True, False]


def test_a_page_that_was_read_already_is_decoded_once_and_is_not_taken_for_another() -> None:
    clinic, cars = page(CLINIC), page(CARS)
    read, fresh = Document(clinic), facts_of(clinic)
    keep_document(clinic, read)
    judged = msgspec.structs.replace(clinic, links=(Link("http://a.test/1"),))
    assert (facts_of(judged).text, facts_of(judged).keywords) == (fresh.text, fresh.keywords)
    assert {"markup", "text"} <= vars(read).keys()
    assert "We sell cars" in facts_of(cars).text


@pytest.mark.parametrize("gate", ["follow", "fetch", "parse"])
def test_what_is_not_known_yet_is_refused_at_its_gate(gate: VisitGate) -> None:
    with pytest.raises(ExpressionError, match="'text' is not known at gate"):
        Expression("text(a)", gate)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("header", "takes the name of a header field"),
        ("header(a, b) matches c", "takes one name before `matches`"),
        ("keywords", "takes at least one value"),
        ("text", "takes at least one word"),
        ("links", "has to be 'links(VALUE, ...)' or 'links <= NUMBER'"),
        ("keywords(a) >= many", "many"),
        ("title(a) matches b", "has to be"),
    ],
)
def test_a_mistake_in_a_question_about_pages_is_one_clear_line(source: str, said: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        Expression(source, "store")
    assert said in str(raised.value)


def test_keywords_are_what_a_page_is_about_and_always_the_same() -> None:
    text = "The liver is an organ. The liver of the fox. Liver cells and liver cells.\n" + "Foxes eat. " * 3
    found = keywords("Liver cells", text)
    assert found[:2] == ("liver cells", "liver")
    assert "the" not in found
    assert found == keywords("Liver cells", text)
    assert keywords("", "") == ()
    assert len(keywords("", " ".join(f"word{number}x" for number in range(9_000)))) == 40


def test_keywords_of_a_script_without_spaces_are_pairs_of_its_characters() -> None:
    assert "医院" in keywords("", "医院在这里。医院很好。")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["store: text(hospital)"], "pass"),
        (["store: keywords(garage)"], "refuse"),
        (["store: type(MedicalWebPage) and title matches Heart and size > 100"], "pass"),
        (["store: header(server) matches nginx", "--header", "Server: nginx/1.27"], "pass"),
        (["expand: links >= 5", "--links", "5"], "pass"),
    ],
)
def test_check_filter_judges_a_saved_page(line: list[str], expected: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    saved = tmp_path / "page.html"
    saved.write_bytes(CLINIC)
    done = CliRunner().invoke(commands, ["check-filter", line[0], "http://a.test/", "--page", str(saved), *line[1:]])
    assert done.output.split("\t")[0] == expected
