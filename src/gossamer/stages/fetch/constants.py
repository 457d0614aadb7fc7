"""What all requests have in common: the options of libcurl that are set once for each handle, and the fields that are sent.

Place in the flow: :mod:`~gossamer.stages.fetch.http` makes them of its settings; each
:class:`~gossamer.stages.fetch.transfer.Transfer` begins with them.
"""

import ssl
from collections.abc import Sequence
from typing import Any

import msgspec
import pycurl

from gossamer.flow.errors import SettingError
from gossamer.model.requesting import is_secret
from gossamer.stages.fetch.head import CAPS, Caps

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


class Constants(msgspec.Struct, frozen=True):
    """What every request has in common until the sheet changes."""

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
        # The canonical URL is what the server is asked for: libcurl must not fold dots of its own (fault 34).
        (pycurl.PATH_AS_IS, 1),
        (pycurl.HTTP_CONTENT_DECODING, 0),
        (pycurl.BUFFERSIZE, buffer),
        (pycurl.MAXAGE_CONN, _MOST_IDLE),
        (pycurl.USERAGENT, user_agent),
        (pycurl.HTTPHEADER, header),
        (pycurl.SSL_VERIFYPEER, int(verify)),
        (pycurl.SSL_VERIFYHOST, 2 if verify else 0),
    ]
    if ca_file:
        options.append((pycurl.CAINFO, ca_file))
    if not is_proxied:
        # An empty proxy, and no host to use one for: the environment's is never asked (fault 51).
        options += [(pycurl.PROXY, ""), (pycurl.NOPROXY, "*")]
    else:
        options += [(pycurl.NOPROXY, ""), (_SUPPRESS_CONNECT_HEADERS, 1)]
        header.append("Proxy-Connection:")  # an empty field: libcurl would send one that no standard knows
    kept = (field for field in fields if not is_secret(*field.split(": ", 1)))
    sent = "".join(f"{field}\r\n" for field in (f"User-Agent: {user_agent}", *kept))
    return Constants(tuple(options), sent, tuple(header), caps, http2, is_proxied, verify)


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
