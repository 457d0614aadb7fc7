"""How a fetch ended: a closed list, the same word in ledger, tables, log, metrics and JSON (DESIGN 9.11)."""

from enum import StrEnum


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


#: Outcomes behind which a server's answer stands: they count as `fetched` and are archived.
ANSWERED = frozenset(
    {
        Outcome.OK,
        Outcome.NOT_MODIFIED,
        Outcome.REDIRECT,
        Outcome.CLIENT_ERROR,
        Outcome.SERVER_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.TRUNCATED,
        Outcome.DECODE_FAILED,
    }
)

#: Outcomes that a later try could turn into a page: a crawl that ends with one of them is incomplete (DESIGN 9.7).
TRANSIENT = frozenset(
    {
        Outcome.SERVER_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.ROBOTS_UNREACHABLE,
        Outcome.DNS_FAILED,
        Outcome.CONNECT_FAILED,
        Outcome.TLS_FAILED,
        Outcome.TIMED_OUT,
        Outcome.TOO_SLOW,
        Outcome.PROTOCOL_FAILED,
        Outcome.GONE_AFTER_RETRIES,
    }
)


def of_status(status: int) -> Outcome:
    """The outcome of a complete answer with this HTTP status code (RFC 9110, section 15).

    Codes outside 100-599 are a broken protocol; 1xx can not end an exchange, so it is one too.
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
