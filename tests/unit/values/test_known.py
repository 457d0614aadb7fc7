"""What a visit says of a page that is known: pure code, one case for each way in which pages change or seem to."""

import pytest

from gossamer.values.outcome import JudgedBy, Outcome, PageChange, of_status
from gossamer.values.page_history import MAX_VALIDATOR, KnownPage, after, compared
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit

KNOWN = KnownPage(visited_at=1.0, changed_at=1.0, digest="D", simhash=0b1111, etag='"v"')


def visit(
    status: int = 200, *, digest: str = "", simhash: int = 0, etag: str = "", asked: str = "", to: str = ""
) -> Visit:
    headers = tuple((name, value) for name, value in (("etag", etag), ("location", to)) if value)
    response = Response(of_status(status), status, headers=headers)
    return Visit(Task("http://a.test/", "a.test", etag=asked), response, digest=digest, simhash=simhash)


@pytest.mark.parametrize(
    ("known", "visited", "change", "judge"),
    [
        (KNOWN, visit(304, asked='"v"'), PageChange.UNCHANGED, JudgedBy.SERVER),
        (KNOWN, visit(digest="D"), PageChange.UNCHANGED, JudgedBy.DIGEST),
        (KNOWN, visit(digest="E"), PageChange.CHANGED, JudgedBy.DIGEST),
        (KNOWN, visit(digest="E", simhash=0b1000), PageChange.UNCHANGED, JudgedBy.TEXT),
        (KNOWN, visit(digest="E", simhash=0b11110000), PageChange.CHANGED, JudgedBy.TEXT),
        (KNOWN, visit(301, to="/b"), PageChange.REDIRECTED, JudgedBy.STATUS),
        (KNOWN, visit(404), PageChange.MISSING, JudgedBy.STATUS),
        (KNOWN, visit(410), PageChange.MISSING, JudgedBy.STATUS),
    ],
)
def test_changes_are_judged_by_server_digest_text_and_status_in_this_order(
    known: KnownPage, visited: Visit, change: PageChange, judge: JudgedBy
) -> None:
    found = compared(known, visited)
    assert found is not None and (found.change, found.judged_by) == (change, judge)


@pytest.mark.parametrize("status", [304, 403, 429, 500])
def test_an_answer_that_says_nothing_of_the_page_changes_nothing_of_what_is_known(status: int) -> None:
    assert compared(KNOWN, visit(status)) is None
    kept = after(KNOWN, visit(status), 9.0)
    assert kept is not None and (kept.digest, kept.changes, kept.changed_at) == ("D", 0, 1.0)


def test_missing_twice_is_gone_and_a_page_that_is_there_in_between_is_not() -> None:
    page: KnownPage | None = KNOWN
    told = []
    for visited in (visit(404), visit(digest="D"), visit(404), visit(404), visit(404), visit(digest="D")):
        found = compared(page, visited)
        assert found is not None
        told.append(found.change)
        page = after(page, visited, 2.0)
    assert told == [
        PageChange.MISSING,
        PageChange.UNCHANGED,
        PageChange.MISSING,
        PageChange.GONE,
        PageChange.UNCHANGED,
        PageChange.BACK,
    ]
    assert page is not None and page.changes == 2, "that it was gone, and that it is back"


def test_a_redirect_changes_when_it_appears_leads_elsewhere_or_ends() -> None:
    page: KnownPage | None = KNOWN
    told = []
    for visited in (visit(301, to="/b"), visit(302, to="/b"), visit(302, to="/c"), visit(digest="D")):
        found = compared(page, visited)
        assert found is not None
        told.append(found.change)
        page = after(page, visited, 2.0)
    assert told == [PageChange.REDIRECTED, PageChange.UNCHANGED, PageChange.REDIRECTED, PageChange.CHANGED]


def test_validators_are_kept_as_the_last_answer_gave_them_and_bounded() -> None:
    page = after(KNOWN, visit(digest="D", etag='"w"'), 2.0)
    assert page is not None and page.etag == '"w"'
    page = after(page, visit(digest="D", etag="x" * (MAX_VALIDATOR + 1)), 3.0)
    assert page is not None and page.etag == ""


def test_a_server_that_says_304_to_everybody_gets_no_validator_any_more() -> None:
    page = after(KNOWN, visit(304), 2.0)
    assert page is not None and page.etag == ""


def test_nothing_is_known_of_a_page_that_never_brought_anything() -> None:
    assert after(None, visit(404), 1.0) is None
    assert after(None, Visit(Task("http://a.test/", "a.test"), Response(Outcome.TIMED_OUT)), 1.0) is None
    assert after(None, visit(digest="D"), 1.0) is not None
