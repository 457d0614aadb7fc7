"""The settings of the protocol module for http and https, and what all requests have in common by them.

Place in the flow: :mod:`~gossamer.fetcher.http` makes :class:`Constants` of its settings: the options of libcurl that are set
once for each handle, and the fields that are sent. Each :class:`~gossamer.fetcher.transfer.Transfer` begins with them.
"""

import ssl
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import pycurl

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.fetcher.response_head import CAPS, Caps
from gossamer.values.body import THRESHOLD
from gossamer.values.request_identity import is_secret


class HttpSheet(Sheet, frozen=True):
    """Settings for http and https."""

    user_agent: Annotated[str, setting("Send this as User-Agent; empty: product, version and contact.")] = ""
    contact: Annotated[
        str, setting("Name this URL or mail address in requests, so that site owners can reach you.")
    ] = ""
    header: Annotated[tuple[str, ...], setting("Also send these request fields, each as `Name: value`.")] = ()
    headers: Annotated[
        dict[str, tuple[str, ...]],
        setting("Also send these request fields, each as `Name: value`, to these hosts, as `*.example.org`."),
    ] = msgspec.field(default_factory=dict)
    credentials: Annotated[
        tuple[str, ...],
        setting(
            "Send this field to one site alone, as `SITE Name: value` (SITE as https://example.org); it is never archived.",
            secret=True,
            names="a secret",
        ),
    ] = ()
    cookies: Annotated[
        Literal["off", "host", "keep"],
        setting(
            "Send cookies back to the server that set them, within bounds: `host` in this run, `keep` in later runs too."
        ),
    ] = "off"
    cookie_file: Annotated[
        str,
        setting(
            "Begin with the cookies of this file (Netscape's format or JSON); other users must not be able to read it.",
            names="a file",
        ),
    ] = ""
    directory: Annotated[
        str,
        setting(
            "Use this crawl directory; kept cookies lie in `state/cookies` below it.",
            restart="they lie there",
            names="a folder",
        ),
    ] = ""
    proxy: Annotated[
        tuple[str, ...],
        setting(
            "Send requests through http://[USER:PASSWORD@]HOST:PORT or socks5h://..., taking turns if there are "
            "several; @FILE and $NAME read proxies from a file or an environment variable. HTTP_PROXY and its like "
            "are ignored.",
            secret=True,
            names="a secret",
        ),
    ] = ()
    http2: Annotated[
        bool,
        setting(
            "Offer HTTP/2 to https servers. With one request at a time per host HTTP/2 gains nothing, and the "
            "archive has to render its answers as 1.1, so it is off by default."
        ),
    ] = False
    timings: Annotated[bool, setting("Record for each answer when each phase of the fetch ended.")] = False
    connect: Annotated[float, setting("Give up a TCP connection that takes longer than this.", unit="s", gt=0)] = 10.0
    tls: Annotated[
        float, setting("Give up a TLS handshake that takes longer than this, after `connect`.", unit="s", gt=0)
    ] = 10.0
    first_byte: Annotated[
        float, setting("Give up an answer whose head takes longer than this after the request.", unit="s", gt=0)
    ] = 30.0
    deadline: Annotated[float, setting("Give up a fetch that takes longer than this in all.", unit="s", gt=0)] = 120.0
    least_speed: Annotated[float, setting("Give up a body that comes slower than this.", unit="bytes/s", ge=0)] = 100.0
    speed_window: Annotated[float, setting("Measure the least speed over this time.", unit="s", gt=0)] = 30.0
    bandwidth: (
        Annotated[float, setting("Take at most this many bytes of bodies a second in all.", unit="bytes/s", gt=0)]
        | None
    ) = None
    max_body: Annotated[
        int, setting("Keep at most this many bytes of a body, both as sent and as decoded.", unit="bytes", ge=1)
    ] = 16 << 20
    max_head: Annotated[
        int, setting("Refuse an answer whose head is longer than this.", unit="bytes", ge=1024, le=256 << 10)
    ] = CAPS.size
    max_fields: Annotated[
        int, setting("Refuse an answer with more header fields than this.", unit="fields", ge=1, le=4000)
    ] = CAPS.fields
    spool_above: Annotated[int, setting("Keep bodies larger than this on the disk.", unit="bytes", ge=0)] = THRESHOLD
    spool: Annotated[
        str,
        setting(
            "Keep large bodies in this directory while they are used; if empty, in the system's temporary directory.",
            names="a folder",
        ),
    ] = ""
    connections: Annotated[
        int,
        setting(
            "Have at most this many connections open, busy and idle; if 0, as many as there are requests at once, and at least "
            "256. The system's limit of open files bounds both.",
            unit="connections",
            ge=0,
            restart="requests under way hold them",
        ),
    ] = 0
    verify: Annotated[bool, setting("Refuse servers whose certificate is not valid for their name.")] = True
    ca_file: Annotated[
        str, setting("Trust the certificates in this file (PEM); if empty, the system's.", names="a file")
    ] = ""


#: Seconds that a connection may have been idle when it is used again. Common servers close theirs after 5 s; a request that
#: crosses their farewell would fail, and spend a try of its page.
_MOST_IDLE = 4

#: CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl does not name: what a proxy says of its tunnel is no answer.
_SUPPRESS_CONNECT_HEADERS = 265

#: libcurl hands over at most this much at once; most pages then come in one or two pieces. Under a bandwidth it is less, so that
#: bytes come evenly: this share of what a second allows, and at least so much (libcurl takes no less).
_BUFFER = 64 * 1024
_SHARE = 1 / 16
_LEAST_BUFFER = 1024


#: Groups of key exchange that are offered, the cheapest first. OpenSSL by itself also makes a key that withstands quantum
#: computers, which is a tenth of a handshake, for pages that anyone may read.
_GROUPS = "X25519:P-256:P-384:P-521"

#: Pools of TLS sessions. libcurl remembers those of 25 servers in each, and a crawl takes turns among more: a handshake that goes
#: on with a session costs a sixth less.
_SESSION_POOLS = 64


def _session_pool() -> pycurl.CurlShare:
    pool = pycurl.CurlShare()
    pool.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_SSL_SESSION)
    return pool


class Constants(msgspec.Struct, frozen=True):
    """The parts that every request has in common until the sheet changes."""

    options: tuple[tuple[int, Any], ...]
    fields: str
    """The request's fields after Host, as the archive has them: as they are sent, without any that looks secret."""
    header: tuple[str, ...] = ()
    """Those that libcurl is told of: all but User-Agent."""
    caps: Caps = CAPS
    http2: bool = False
    is_proxied: bool = False
    """Each request goes by a proxy, which it names."""
    verifies: bool = True
    """Servers whose certificate is not valid for their name are refused."""
    session_pools: tuple[pycurl.CurlShare, ...] = ()

    def session_pool_of(self, authority: str) -> pycurl.CurlShare:
        """The pool that remembers the TLS sessions with a server."""
        return self.session_pools[hash(authority) % _SESSION_POOLS]


def constants(
    fields: Sequence[str],
    user_agent: str,
    *,
    verify: bool,
    ca_file: str,
    caps: Caps = CAPS,
    http2: bool = False,
    is_proxied: bool = False,
    bandwidth: float | None = None,
) -> Constants:
    """The options that are set once for each handle, and the fields that follow from them."""
    header = list(fields)
    buffer = _BUFFER if bandwidth is None else max(_LEAST_BUFFER, min(_BUFFER, int(bandwidth * _SHARE)))
    options: list[tuple[int, Any]] = [
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if http2 else pycurl.CURL_HTTP_VERSION_1_1),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        # The canonical URL is what the server is asked for: libcurl must not fold dots of its own.
        (pycurl.PATH_AS_IS, 1),
        (pycurl.HTTP_CONTENT_DECODING, 0),
        (pycurl.BUFFERSIZE, buffer),
        (pycurl.MAXAGE_CONN, _MOST_IDLE),
        (pycurl.USERAGENT, user_agent),
        (pycurl.HTTPHEADER, header),
        (pycurl.SSL_VERIFYPEER, int(verify)),
        (pycurl.SSL_VERIFYHOST, 2 if verify else 0),
    ]
    if "OpenSSL" in pycurl.version:
        options.append((pycurl.SSL_EC_CURVES, _GROUPS))
    if ca_file:
        options.append((pycurl.CAINFO, ca_file))
    if not is_proxied:
        # An empty proxy, and no host to use one for: the environment's is never asked.
        options += [(pycurl.PROXY, ""), (pycurl.NOPROXY, "*")]
    else:
        options += [(pycurl.NOPROXY, ""), (_SUPPRESS_CONNECT_HEADERS, 1)]
        header.append("Proxy-Connection:")  # an empty field: libcurl would send one that no standard knows
    kept = (field for field in fields if not is_secret(*field.split(": ", 1)))
    sent = "".join(f"{field}\r\n" for field in (f"User-Agent: {user_agent}", *kept))
    pools = tuple(_session_pool() for _ in range(_SESSION_POOLS))
    return Constants(tuple(options), sent, tuple(header), caps, http2, is_proxied, verify, pools)


def trusted(ca_file: str) -> str:
    """The file, once it is known to hold certificates: libcurl would say of every https server that it failed.

    Raises:
        SettingError: it cannot be read, or holds none.
    """
    if ca_file:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca_file)
        except OSError as error:  # an SSLError is one
            reason = "it holds no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
            raise SettingError(f"ca_file {ca_file!r} cannot be used: {reason}") from None
    return ca_file
