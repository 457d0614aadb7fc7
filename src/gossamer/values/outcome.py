"""Outcomes say how a fetch ended. The list is closed; ledger, tables, log, metrics and JSON use the same words (question 11).
So are the changes of a page that is visited again, and the notes of an answer that departs from a standard.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

import msgspec


class Outcome(StrEnum):
    """One word for every way in which a fetch can end."""

    OK = "ok"
    NOT_MODIFIED = "not_modified"
    REDIRECT = "redirect"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    RATE_LIMITED = "rate_limited"
    ROBOTS_DENIED = "robots_denied"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    ADDRESS_REFUSED = "address_refused"
    SCHEME_REFUSED = "scheme_refused"
    DNS_FAILED = "dns_failed"
    CONNECT_FAILED = "connect_failed"
    TLS_FAILED = "tls_failed"
    TIMED_OUT = "timed_out"
    TOO_SLOW = "too_slow"
    TRUNCATED = "truncated"
    DECODE_FAILED = "decode_failed"
    PROTOCOL_FAILED = "protocol_failed"
    BLOCKED = "blocked"
    GONE_AFTER_RETRIES = "gone_after_retries"
    INTERRUPTED = "interrupted"
    """The process was killed while it sent a request that may not be sent twice, so its result is unknown."""
    IRRELEVANT = "irrelevant"
    """A mobile crawler judged the document at its runtime, and left it there."""


class Traits(msgspec.Struct, frozen=True):
    """The meaning of an outcome, for all code that counts, shows or decides."""

    is_answered: bool = False
    """Whether a server answered. Such a fetch counts as `fetched` and is archived."""
    has_document: bool = False
    """Whether the answer is a document, whole or cut. An HTML document is a page."""
    is_error: bool = False
    """Whether the fetch failed, on either side, and not because a rule refused it."""
    is_transient: bool = False
    """Whether a later try could bring a page. A crawl that ends with such an outcome is incomplete (design question 7)."""


_ANSWER = Traits(is_answered=True)
_DOCUMENT = Traits(is_answered=True, has_document=True)
_DECIDED = Traits()
_FAILURE = Traits(is_error=True, is_transient=True)
_FAILING_SERVER = Traits(is_answered=True, is_error=True, is_transient=True)

#: The only place that says what an outcome means. A dead link (`client_error`) is an answer, and no error.
TRAITS: Mapping[Outcome, Traits] = MappingProxyType(
    {
        Outcome.OK: _DOCUMENT,
        Outcome.NOT_MODIFIED: _ANSWER,
        Outcome.REDIRECT: _ANSWER,
        Outcome.CLIENT_ERROR: _ANSWER,
        Outcome.SERVER_ERROR: _FAILING_SERVER,
        Outcome.RATE_LIMITED: _FAILING_SERVER,
        Outcome.ROBOTS_DENIED: _DECIDED,
        Outcome.ROBOTS_UNREACHABLE: _FAILURE,
        Outcome.ADDRESS_REFUSED: _DECIDED,
        Outcome.SCHEME_REFUSED: _DECIDED,
        Outcome.DNS_FAILED: _FAILURE,
        Outcome.CONNECT_FAILED: _FAILURE,
        Outcome.TLS_FAILED: _FAILURE,
        Outcome.TIMED_OUT: _FAILURE,
        Outcome.TOO_SLOW: _FAILURE,
        Outcome.TRUNCATED: _DOCUMENT,
        Outcome.DECODE_FAILED: Traits(is_answered=True, is_error=True),
        Outcome.PROTOCOL_FAILED: _FAILURE,
        Outcome.BLOCKED: _DECIDED,
        Outcome.GONE_AFTER_RETRIES: _FAILURE,
        Outcome.INTERRUPTED: Traits(is_error=True),
        Outcome.IRRELEVANT: _DECIDED,
    }
)

#: The same as sets, which is how they are asked for.
ANSWERED = frozenset(outcome for outcome, traits in TRAITS.items() if traits.is_answered)
DOCUMENTS = frozenset(outcome for outcome, traits in TRAITS.items() if traits.has_document)
ERRORS = frozenset(outcome for outcome, traits in TRAITS.items() if traits.is_error)
TRANSIENT = frozenset(outcome for outcome, traits in TRAITS.items() if traits.is_transient)


@lru_cache(maxsize=1_024)  # asked twice for each answer; a status has three digits
def of_status(status: int) -> Outcome:
    """The outcome of a complete answer with this HTTP status code (RFC 9110, section 15).

    Codes outside 100-599 break the protocol. So do codes 1xx, since they cannot end an exchange.
    """
    if 200 <= status < 300:
        return Outcome.OK
    if status == 304:
        return Outcome.NOT_MODIFIED
    if 300 <= status < 400:
        return Outcome.REDIRECT
    if status == 429:
        return Outcome.RATE_LIMITED
    if 400 <= status < 500:
        return Outcome.CLIENT_ERROR
    if 500 <= status < 600:
        return Outcome.SERVER_ERROR
    return Outcome.PROTOCOL_FAILED


# -- changes of a known page: the words of the columns `change` and `judged_by`


class PageChange(StrEnum):
    """The change of a known page."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REDIRECTED = "redirected"
    """It leads elsewhere: a redirect appeared, or has another target."""
    MISSING = "missing"
    """The server has nothing there. That may pass: nothing is taken away yet."""
    GONE = "gone"
    """It has nothing there for the second time in a row."""
    BACK = "back"
    """The page was gone, and is there again."""


class JudgedBy(StrEnum):
    """The evidence for that."""

    SERVER = "server"
    """It answered `304`."""
    DIGEST = "digest"
    """The digest of the bytes."""
    TEXT = "text"
    """The fingerprint of the text."""
    STATUS = "status"
    """The kind of answer: document, redirect, or nothing there."""


class Comparison(msgspec.Struct, frozen=True):
    """A visit of a page, compared with the visit before."""

    change: PageChange
    judged_by: JudgedBy
    bits: int | None = None
    """In how many bits the fingerprints of the texts differ; None where one of them is missing."""


# -- notes: a closed list of departures from a standard that do not keep an answer from being read
# A protocol module notes them in the response and counts them as `note:WORD`; log, tables, archive and `why` tell them. None
# changes a document; it says only how sure one can be of it.


class Note(StrEnum):
    """One oddity of an answer; :data:`MEANINGS` says which."""

    STATUS_LINE = "status_line"
    SPACED_NAME = "space_before_colon"
    NO_FIELD = "no_field"
    CONTROL_CHARACTER = "control_character"
    CHUNKED_TWICE = "chunked_twice"
    LENGTH_TWICE = "length_twice"
    LOOSE_LENGTH = "loose_length"
    NO_CODING = "identity"
    CONTENT_TYPE = "content_type"
    UNKNOWN_CODING = "unknown_coding"
    BROKEN_CODING = "broken_coding"
    CODING_END = "coding_end"
    CODING_SUM = "coding_sum"
    PART = "part"
    ASKED_AGAIN = "asked_again"


MEANINGS = {
    Note.STATUS_LINE: "The status line is not written as that of HTTP/1.0 or 1.1; its status is clear.",
    Note.SPACED_NAME: "White space stands between the name of a field and its colon; it does not decide where the answer ends.",
    Note.NO_FIELD: "A line of the head has no colon, or a name with characters that no name may have; it was ignored.",
    Note.CONTROL_CHARACTER: "A field or the status line holds a control character, neither NUL nor a bare carriage return.",
    Note.CHUNKED_TWICE: "`Transfer-Encoding: chunked` is given more than once, for a body that is chunked once.",
    Note.LENGTH_TWICE: "`Content-Length` is given more than once, with the same value.",
    Note.LOOSE_LENGTH: "`Content-Length` has a plus sign, or is empty: then the body ends with its connection.",
    Note.NO_CODING: "`Transfer-Encoding` says `identity`, or nothing, beside other words or alone; that changes nothing.",
    Note.CONTENT_TYPE: "`Content-Type` is given more than once, or is no media type.",
    Note.UNKNOWN_CODING: "The answer names an unknown content coding; the body was read as if it had no coding.",
    Note.BROKEN_CODING: "The content coding is broken; the bytes before the fault were read.",
    Note.CODING_END: "Bytes follow the end of the content coding, or its check sum is missing. The document is whole.",
    Note.CODING_SUM: "The check sum of the content coding is wrong: all of the document came, and something in it is damaged.",
    Note.PART: "The server sent a part (206), which was not asked for. Where its range is the whole document, that was read.",
    Note.ASKED_AGAIN: "libcurl could not read the first answer. The URL was asked for once more, and this is the second answer.",
}
