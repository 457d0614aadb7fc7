"""From a transfer that has ended to the response that the crawl keeps.

Place in the flow: the protocol module for http (:mod:`~gossamer.fetcher.http`) asks here with the head of each answer whether
its body is wanted, once for the verdict on each transfer, and makes its response here.

A verdict is our own word first, then libcurl's, then the status of the answer. Libcurl's errors are outcomes by a table, so
that retries, reports and tests read the same words. Each code has one outcome before the head of an answer was complete and one
after. After it, something of the page is there: a connection that breaks then has *truncated* a page, one that breaks earlier
has brought nothing. Codes that the table does not name cannot come from a server; they count as `protocol_failed`, with
libcurl's word.
"""

import re
from collections.abc import Sequence

import msgspec
import pycurl

from gossamer.documents import content_coding
from gossamer.documents.content_coding import Keeping
from gossamer.engine.unit import Metrics
from gossamer.expressions.contract import VisitFilter, refusal
from gossamer.fetcher.response_head import Head
from gossamer.fetcher.transfer import Cut, Transfer, Wanted
from gossamer.values import media_type
from gossamer.values.body import Body, beginning
from gossamer.values.media_type import UNKNOWN
from gossamer.values.outcome import Note, Outcome, of_status
from gossamer.values.patterns import lazy_pattern
from gossamer.values.request_identity import Requested
from gossamer.values.task import Task
from gossamer.values.url import endpoint_of, scheme_of
from gossamer.values.visit import Response, Visit


def unwanted(gates: Sequence[VisitFilter], task: Task, metrics: Metrics, head: Head) -> Cut | None:
    """The verdict on a body that a filter refuses by its head; None where it is to be fetched.

    A head that does not say what kind of document follows is not judged: its bytes may show one that is wanted.
    """
    response = Response(of_status(head.status), head.status, headers=head.fields)
    if response.mime in UNKNOWN:
        return None
    rule = refusal(gates, "body", Visit(task, response))
    if not rule:
        return None
    length = response.header("content-length")
    metrics.count(f"barred:{rule}")
    if length.isdigit():
        metrics.counters["barred_bytes"] += int(length)
    size = f"{length} bytes" if length else "a body of unknown length"
    return Cut(Outcome.TRUNCATED, f"{rule}: {size} not fetched", "unspecified", rule)


class CodeMeaning(msgspec.Struct, frozen=True):
    """The meaning of an error code."""

    early: Outcome
    """Before the head was complete."""
    late: Outcome
    """After it."""
    cut: str = ""
    """The WARC-Truncated word of a late one that leaves part of a body."""


def _always(outcome: Outcome) -> CodeMeaning:
    return CodeMeaning(outcome, outcome)


_TLS = _always(Outcome.TLS_FAILED)
_PROTOCOL = _always(Outcome.PROTOCOL_FAILED)

ENDINGS: dict[int, CodeMeaning] = {
    # The address did not let us in, or not through.
    pycurl.E_COULDNT_CONNECT: _always(Outcome.CONNECT_FAILED),
    pycurl.E_COULDNT_RESOLVE_PROXY: _always(Outcome.CONNECT_FAILED),
    97: _always(Outcome.CONNECT_FAILED),  # CURLE_PROXY, which pycurl does not name
    pycurl.E_INTERFACE_FAILED: _always(Outcome.CONNECT_FAILED),
    pycurl.E_NO_CONNECTION_AVAILABLE: _always(Outcome.CONNECT_FAILED),
    # The connection broke: while we spoke or waited it is the host's matter, while it answered the page is cut.
    pycurl.E_SEND_ERROR: CodeMeaning(Outcome.CONNECT_FAILED, Outcome.TRUNCATED, "disconnect"),
    pycurl.E_RECV_ERROR: CodeMeaning(Outcome.CONNECT_FAILED, Outcome.TRUNCATED, "disconnect"),
    # Fewer bytes than Content-Length or the last chunk promised.
    pycurl.E_PARTIAL_FILE: CodeMeaning(Outcome.PROTOCOL_FAILED, Outcome.TRUNCATED, "disconnect"),
    # CURLE_HTTP2_STREAM, which pycurl does not name: a stream of HTTP/2 that breaks off, as a connection of 1.1 does.
    92: CodeMeaning(Outcome.PROTOCOL_FAILED, Outcome.TRUNCATED, "disconnect"),
    # Closed without a word: overloaded servers do so, and ports that expect another protocol.
    pycurl.E_GOT_NOTHING: _PROTOCOL,
    # The answer is no HTTP: 0.9 and unknown versions come as "unsupported protocol".
    pycurl.E_UNSUPPORTED_PROTOCOL: _PROTOCOL,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: _PROTOCOL,
    pycurl.E_HTTP2: _PROTOCOL,
    pycurl.E_HTTP_RETURNED_ERROR: _PROTOCOL,
    pycurl.E_BAD_CONTENT_ENCODING: _PROTOCOL,
    # libcurl's own caps on heads (300 KB, 5,000 fields), should ours not have come first; it has no name in pycurl.
    100: _PROTOCOL,
    # A URL that libcurl reads otherwise than we do must not be asked for.
    pycurl.E_URL_MALFORMAT: _always(Outcome.ADDRESS_REFUSED),
    # Cannot happen while addresses come by CONNECT_TO; if it does, libcurl asked a name server and was not answered.
    pycurl.E_COULDNT_RESOLVE_HOST: _always(Outcome.DNS_FAILED),
    # Deadlines are ours; libcurl's own for connecting stands behind them.
    pycurl.E_OPERATION_TIMEDOUT: CodeMeaning(Outcome.TIMED_OUT, Outcome.TIMED_OUT, "time"),
    # TLS: handshake, certificate, name, and broken records.
    pycurl.E_SSL_CONNECT_ERROR: _TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: _TLS,
    pycurl.E_SSL_CERTPROBLEM: _TLS,
    pycurl.E_SSL_CIPHER: _TLS,
    pycurl.E_SSL_CACERT_BADFILE: _TLS,
    pycurl.E_SSL_ISSUER_ERROR: _TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: _TLS,
    pycurl.E_SSL_PINNEDPUBKEYNOTMATCH: _TLS,
}


#: Words of libcurl and the TLS library, in small letters, and what we add to them.
_HINTS = {
    ("wrong version number", "http request", "packet length too long", "record layer failure"): (
        "the server speaks no TLS at this port, perhaps plain http"
    ),
    ("self-signed certificate", "unable to get local issuer"): (
        "if you trust it, --ca-file FILE names its authority, or the certificate itself"
    ),
    ("certificate has expired",): "the owner of the server has to renew it",
}

#: Words of libcurl for an answer that is no HTTP, as servers that expect TLS give it.
_NO_HTTP, HTTP_PORT = ("Empty reply from server", "Received HTTP/0.9 when not allowed"), 80


def _hint(transfer: Transfer, message: str) -> str:
    """The addition to a message of libcurl, as the rest of a sentence; empty where it says enough."""
    if message in _NO_HTTP:
        url = transfer.curl.getinfo(pycurl.EFFECTIVE_URL)
        may_be_tls = scheme_of(url) == "http" and endpoint_of(url)[1] != HTTP_PORT
        return "; perhaps it speaks TLS at this port: try https" if may_be_tls else ""
    words = message.lower()
    return next((f"; {hint}" for signs, hint in _HINTS.items() if any(sign in words for sign in signs)), "")


def ending_of(code: int, os_error: int, message: str) -> CodeMeaning:
    """The ending of a transfer that libcurl gave up.

    A broken chunk and a broken connection both come as E_RECV_ERROR. Only the first is the server's grammar, and only
    the second has an error number of the system, or is told by the TLS library.
    """
    if "CONNECT tunnel failed" in message:
        return _always(Outcome.CONNECT_FAILED)  # the proxy reached no server
    if code == pycurl.E_RECV_ERROR and not os_error and "SSL" not in message:
        return _PROTOCOL
    return ENDINGS.get(code, _PROTOCOL)


def verdict_on(transfer: Transfer, ending: tuple[int, str]) -> Cut:
    """How a transfer ended."""
    code, message = ending
    status = transfer.head.status if transfer.head else 0
    if transfer.verdict:
        return beside_status(transfer.verdict, status)
    if status == 206 and not code and transfer.head and not _is_whole(transfer.head, transfer.size):
        # No range was asked for: what this is a part of, only the server knows.
        return Cut(Outcome.PROTOCOL_FAILED, "the server sent a part of the document, which was not asked for")
    if not code:
        return Cut(of_status(status), "" if status else "the server closed the connection before the end of the head")
    message = message or f"libcurl's error {code}"
    message += _hint(transfer, message)
    meaning = ending_of(code, transfer.curl.getinfo(pycurl.OS_ERRNO), message)
    if not status:
        return Cut(meaning.early, message)
    return beside_status(Cut(meaning.late, message, meaning.cut), status)


#: The range that an answer says it has (RFC 9110, section 14.4).
_RANGE = lazy_pattern(r"\s*bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)\s*", re.IGNORECASE | re.ASCII)


def _is_whole(head: Head, size: int) -> bool:
    """Whether an answer of status 206 has the whole document, as curl and browsers take it: its range is all of it, or it names
    none. One with parts of its own has a range in each of them, and so no document."""
    fields = [(name.lower(), value) for name, value in head.fields]
    if any(name == "content-type" and "multipart/byteranges" in value.lower() for name, value in fields):
        return False
    ranges = [_RANGE.fullmatch(value) for name, value in fields if name == "content-range"]
    return all(one and (int(one[1]), int(one[2]) + 1, one[3]) == (0, size, str(size)) for one in ranges)


def beside_status(verdict: Cut, status: int) -> Cut:
    """A cut body changes the outcome of a success only: a redirect or an error says all it has to say in its head."""
    if verdict.outcome is not Outcome.TRUNCATED or (answered := of_status(status)) is Outcome.OK:
        return verdict
    return Cut(answered, verdict.reason, verdict.cut, verdict.barred)


def decode_failed(verdict: Cut, reason: str, status: int) -> Cut:
    """The same for a body that cannot be decoded; a deadline or a broken protocol weighs more."""
    if of_status(status) is not Outcome.OK or verdict.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return verdict
    return Cut(Outcome.DECODE_FAILED, reason, verdict.cut)


def body_of(
    transfer: Transfer, head: Head, verdict: Cut, keeping: Keeping
) -> tuple[Body, Body | None, tuple[Note, ...], Cut]:
    """The body as it came, without its content coding where it has one, what is untidy about that, and the verdict.

    An error page stays one, whatever is wrong with its coding: the fault is told beside the verdict.
    """
    body: Body
    if transfer.store is not None:
        body, undone = transfer.store.take(whole=not verdict.cut)
    else:
        chunks, undone = transfer.chunks, None
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    if not head.content_coding or not body or verdict.outcome is Outcome.PROTOCOL_FAILED:
        return body, None, (), verdict
    applied = content_coding.codings(head.content_coding)
    if not applied:
        return body, None, (), verdict
    if refused := content_coding.refusal(applied):
        return body, None, (), decode_failed(verdict, refused, head.status)
    if undone is None:
        undone = content_coding.decode(beginning(body), applied, keeping, whole=not verdict.cut)
    elif undone.error:
        undone = content_coding.to_the_fault(body, applied, keeping, undone)
    if not undone.is_readable:
        return body, None, (), decode_failed(verdict, undone.error, head.status)
    if undone.error and verdict.outcome is Outcome.OK:
        verdict = Cut(Outcome.TRUNCATED, undone.error, "unspecified")
    elif undone.cut and not verdict.cut:
        verdict = beside_status(Cut(Outcome.TRUNCATED, undone.cut, "length"), head.status)
    if undone.error:
        return body, undone.data, (Note.BROKEN_CODING,), verdict
    if not (undone.is_odd or undone.is_damaged):
        return body, undone.data, (), verdict
    odd = ((undone.is_damaged, Note.CODING_SUM), (undone.is_odd, Note.CODING_END))
    return body, undone.data, tuple(note for is_so, note in odd if is_so), verdict


class Asked(msgspec.Struct, frozen=True):
    """One request as it is to be sent."""

    url: str
    started: float
    """Seconds since the epoch."""
    resolved: float
    """Seconds that finding the address took."""
    shown: tuple[str, ...] = ()
    """Fields of this request alone."""
    secret: tuple[str, ...] = ()
    """Those that are kept out of the archive."""
    wanted: Wanted | None = None
    request: Requested | None = None
    """The request beside that; None for a plain GET."""


def answer_of(
    transfer: Transfer,
    asked: Asked,
    verdict: Cut,
    keeping: Keeping,
    address: str,
    elapsed: float,
    *,
    is_timed: bool,
    is_direct: bool,
) -> Response:
    """The response of a transfer whose head has been judged, as far as one came.

    Args:
        address: the server's, for the row and the archive; empty where a proxy alone knows it.
        elapsed: seconds, without those in which the crawl's own bandwidth held the transfer up.
        is_timed: the response says how long each part took.
        is_direct: no proxy stands between.
    """
    head, timings = transfer.head, None
    if is_timed:
        timings = transfer.timings(asked.resolved, elapsed)
    # The name of the server was not checked then.
    is_unverified = not transfer.shared.verifies and asked.url.startswith("https:")
    if head is None:
        sent, is_new = transfer.is_sent, transfer.is_new
        return Response(
            verdict.outcome,
            request_head=transfer.request_head(asked.url, asked.shown) if sent else b"",
            address=address if sent else "",
            started=asked.started,
            elapsed=elapsed,
            error=verdict.reason,
            timings=timings,
            is_met=bool(transfer.lines)
            or (is_direct and is_new and sent)
            or (asked.request is not None and transfer.is_asked),
            is_unverified=is_unverified,
        )
    body, decoded, of_body, verdict = body_of(transfer, head, verdict, keeping)
    notes = head.notes
    if media_type.is_odd(head.fields):
        notes = (*notes, Note.CONTENT_TYPE)
    if head.status == 206:
        notes = (*notes, Note.PART)
    if head.content_coding and content_coding.has_unknown(head.content_coding):
        notes = (*notes, Note.UNKNOWN_CODING)
    return Response(
        verdict.outcome,
        status=head.status,
        request_head=transfer.request_head(asked.url, asked.shown),
        response_head=head.raw,
        headers=head.fields,
        body=body,
        decoded=decoded,
        address=address,
        started=asked.started,
        elapsed=elapsed,
        cut=verdict.cut,
        error=verdict.reason,
        timings=timings,
        version=transfer.version if is_timed else "",
        is_met=True,
        is_unverified=is_unverified,
        barred=verdict.barred,
        notes=(*notes, *of_body),
    )


#: How libcurl says that an answer is one that it does not read (:mod:`~gossamer.fetcher.untidy`).
UNTIDY = frozenset(
    {
        "Header without colon",
        "Received HTTP/0.9 when not allowed",
        "Unsupported HTTP version in response",
        "Unsupported HTTP/1 subversion in response",
        "Version mismatch (from HTTP/1 to HTTP/2)",
        "Version mismatch (from HTTP/1 to HTTP/3)",
        "Invalid Content-Length: value",
    }
)
