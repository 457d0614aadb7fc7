"""How libcurl's transfers end, as outcomes: a table, so that retries, reports and tests read the same words.

Each code has one outcome before the head of an answer was complete and one after. After it, something of the page is
there: a connection that breaks then has *truncated* a page, one that breaks earlier has brought nothing.
Codes that the table does not name cannot come from a server; they count as `protocol_failed`, with libcurl's word.
"""

import msgspec
import pycurl

from gossamer.model.outcome import Outcome


class CodeMeaning(msgspec.Struct, frozen=True):
    """What an error code means."""

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
    # Fewer bytes than Content-Length or the last chunk promised (fault 18).
    pycurl.E_PARTIAL_FILE: CodeMeaning(Outcome.PROTOCOL_FAILED, Outcome.TRUNCATED, "disconnect"),
    # CURLE_HTTP2_STREAM, which pycurl does not name: a stream of HTTP/2 that breaks off, as a connection of 1.1 does.
    92: CodeMeaning(Outcome.PROTOCOL_FAILED, Outcome.TRUNCATED, "disconnect"),
    # Closed without a word: overloaded servers do so, and ports that expect another protocol.
    pycurl.E_GOT_NOTHING: _PROTOCOL,
    # What came is no HTTP: 0.9 and unknown versions come as "unsupported protocol" (faults 20, 24).
    pycurl.E_UNSUPPORTED_PROTOCOL: _PROTOCOL,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: _PROTOCOL,
    pycurl.E_HTTP2: _PROTOCOL,
    pycurl.E_HTTP_RETURNED_ERROR: _PROTOCOL,
    pycurl.E_BAD_CONTENT_ENCODING: _PROTOCOL,
    # libcurl's own caps on heads (300 KB, 5,000 fields), should ours not have come first; it has no name in pycurl.
    100: _PROTOCOL,
    # A URL that libcurl reads otherwise than we do must not be asked for (fault 34).
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


def ending_of(code: int, os_error: int, message: str) -> CodeMeaning:
    """The ending of a transfer that libcurl gave up.

    A broken chunk and a broken connection both come as E_RECV_ERROR. Only the first is the server's grammar
    (fault 17), and only the second has an error number of the system, or is told by the TLS library.
    """
    if "CONNECT tunnel failed" in message:
        return _always(Outcome.CONNECT_FAILED)  # the proxy let us through to nobody (fault 103)
    if code == pycurl.E_RECV_ERROR and not os_error and "SSL" not in message:
        return _PROTOCOL
    return ENDINGS.get(code, _PROTOCOL)
