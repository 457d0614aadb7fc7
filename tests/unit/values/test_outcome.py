"""The traits of outcomes: every outcome has them, and they fit each other."""

from gossamer.query.schema import HOSTS_VIEW
from gossamer.values.outcome import ANSWERED, DOCUMENTS, ERRORS, TRAITS, TRANSIENT, Outcome, of_status


def test_every_outcome_has_traits_and_none_is_named_twice() -> None:
    assert list(TRAITS) == list(Outcome)


def test_a_document_is_an_answer_and_a_failure_that_may_pass_is_an_error() -> None:
    assert DOCUMENTS <= ANSWERED
    assert not DOCUMENTS & ERRORS
    assert TRANSIENT <= ERRORS, "what may yet bring a page has failed so far"


def test_every_status_code_is_answered_or_a_broken_protocol() -> None:
    found = {of_status(status) for status in range(1000)}
    assert found <= ANSWERED | {Outcome.PROTOCOL_FAILED}
    assert {of_status(404), of_status(410)} & ERRORS == set(), "a dead link is an answer"


def test_sql_counts_errors_by_the_same_table() -> None:
    named = {outcome for outcome in Outcome if f"'{outcome}'" in HOSTS_VIEW}
    assert named == ERRORS | DOCUMENTS
