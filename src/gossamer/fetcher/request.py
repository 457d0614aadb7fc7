"""Requests over http and https: their settings, the options of libcurl that are set once for each handle, and the fields that
tell about us: the constant ones, and those that go to one site or with one task alone.

Place in the flow: :mod:`~gossamer.fetcher.http` makes :class:`Constants` of its settings, with which each
:class:`~gossamer.fetcher.transfer.Transfer` begins. Credentials belong to a site (scheme, host and port): no redirect and no
link takes them elsewhere, and what the archive keeps of a request leaves them out.
"""

import ssl
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import pycurl

from gossamer._version import __version__
from gossamer.documents.content_coding import ACCEPTED
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import setting
from gossamer.fetcher.fetch_stage import TransferSheet
from gossamer.fetcher.response_head import CAPS, Caps
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.hosts import HostTable
from gossamer.values.patterns import lazy_pattern
from gossamer.values.request_identity import CREDENTIAL_FIELDS, RESERVED_FIELDS, Requested, is_secret
from gossamer.values.settings import Bandwidth, CaFile, CookieFile, Cookies, Http2, Proxies, UserAgent
from gossamer.values.task import Task
from gossamer.values.url import authority_of, canonical, scheme_of, site_of


class HttpSheet(TransferSheet, frozen=True):
    """Settings for http and https."""

    user_agent: UserAgent = ""
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
    cookies: Cookies = "off"
    cookie_file: CookieFile = ""
    directory: Annotated[
        str,
        setting(
            "Use this crawl directory; kept cookies lie in `state/cookies` below it.",
            restart="they lie there",
            names="a folder",
        ),
    ] = ""
    proxy: Proxies = ()
    http2: Http2 = False
    tls: Annotated[
        float, setting("Give up a TLS handshake that takes longer than this, after `connect`.", unit="s", gt=0)
    ] = 10.0
    first_byte: Annotated[
        float, setting("Give up an answer whose head takes longer than this after the request.", unit="s", gt=0)
    ] = 30.0
    bandwidth: Annotated[Bandwidth, setting("Take at most this many bytes of bodies a second in all.")] = None
    max_head: Annotated[
        int, setting("Refuse an answer whose head is longer than this.", unit="bytes", ge=1024, le=256 << 10)
    ] = CAPS.size
    max_fields: Annotated[
        int, setting("Refuse an answer with more header fields than this.", unit="fields", ge=1, le=4000)
    ] = CAPS.fields
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
    ca_file: CaFile = ""

    @property
    def shortest(self) -> float:
        return min(self.tls, super().shortest)


#: Seconds that a connection may have been idle when it is used again. Common servers close theirs after 5 s; a request that
#: crosses their farewell would fail, and spend a try of its page.
_MOST_IDLE = 4

#: CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl does not name: the words of a proxy on its tunnel are no answer.
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
    """They remember the TLS sessions, those with one server in one of them."""


def constants(sheet: HttpSheet, *, is_proxied: bool = False) -> Constants:
    """The options that are set once for each handle, and the fields that follow from them. Raises SettingError: a field or the
    file of certificates cannot be used."""
    fields, agent = constant_fields(sheet.header, ACCEPTED), user_agent(sheet.user_agent, sheet.contact)
    ca_file = trusted(sheet.ca_file) or ssl.get_default_verify_paths().cafile
    header, buffer = list(fields), _BUFFER
    if sheet.bandwidth is not None:
        buffer = max(_LEAST_BUFFER, min(_BUFFER, int(sheet.bandwidth * _SHARE)))
    options: list[tuple[int, Any]] = [
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if sheet.http2 else pycurl.CURL_HTTP_VERSION_1_1),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        # The canonical URL is what the server is asked for: libcurl must not fold dots of its own.
        (pycurl.PATH_AS_IS, 1),
        (pycurl.HTTP_CONTENT_DECODING, 0),
        (pycurl.BUFFERSIZE, buffer),
        (pycurl.MAXAGE_CONN, _MOST_IDLE),
        (pycurl.USERAGENT, agent),
        (pycurl.HTTPHEADER, header),
        (pycurl.SSL_VERIFYPEER, int(sheet.verify)),
        (pycurl.SSL_VERIFYHOST, 2 if sheet.verify else 0),
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
    sent = "".join(f"{field}\r\n" for field in (f"User-Agent: {agent}", *kept))
    pools = tuple(_session_pool() for _ in range(_SESSION_POOLS))
    caps = Caps(sheet.max_head, sheet.max_fields)
    return Constants(tuple(options), sent, tuple(header), caps, sheet.http2, is_proxied, sheet.verify, pools)


def trusted(ca_file: str) -> str:
    """The file, once it is known to hold certificates: libcurl would say of every https server that it failed. Raises
    SettingError: it cannot be read, or holds none."""
    if ca_file:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca_file)
        except OSError as error:  # an SSLError is one
            reason = "it holds no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror or error
            raise SettingError(f"ca_file {ca_file!r} cannot be used: {reason}") from None
    return ca_file


#: Asked for in this order by browsers and crawlers alike; servers that negotiate then choose HTML.
_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

_FIELD = lazy_pattern(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\Z")
_VISIBLE = lazy_pattern(r"[\x20-\x7e]*\Z")

#: A validator that may be sent back: no longer than any honest one, and nothing that could end a line.
_VALIDATOR = lazy_pattern(r"[\x21-\x7e](?:[\x20-\x7e]{0,510}[\x21-\x7e])?\Z")


def user_agent(own: str, contact: str) -> str:
    """The User-Agent field: `Gossamer/VERSION (+CONTACT)`, unless `own` says otherwise. Raises SettingError: it holds what
    cannot be sent."""
    text = own or f"Gossamer/{__version__}" + (f" (+{contact})" if contact else "")
    if not _VISIBLE.match(text):
        raise SettingError(f"user agent {text!r}: only visible ASCII characters can be sent")
    return text


def constant_fields(header: Sequence[str], accept_encoding: str) -> tuple[str, ...]:
    """The constant fields after Host and User-Agent, in the order in which they are sent. Raises SettingError: a field of
    `header` is none, or is not to be set there."""
    own: dict[str, str] = {}
    for text in header:
        name, value = _field(text)
        if name.lower() in CREDENTIAL_FIELDS:
            raise SettingError(f"header {name!r}: it would go to every host; give it for one site, in `credentials`")
        own[name.lower()] = f"{name}: {value}"
    accept = own.pop("accept", f"Accept: {_ACCEPT}")
    return (accept, f"Accept-Encoding: {accept_encoding}", *own.values())


def host_fields(header: Mapping[str, Sequence[str]]) -> HostTable[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Further fields for the requests to some hosts: those that the archive keeps, and those that look secret. Raises
    SettingError: a name is no host, or a field is none, or proves who asks."""
    try:
        return HostTable({host: _own_fields(fields) for host, fields in header.items()})
    except UsageError as error:
        raise SettingError(f"headers: {error}") from None


def _own_fields(header: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    shown: list[str] = []
    secret: list[str] = []
    for text in header:
        name, value = _field(text)
        if name.lower() in CREDENTIAL_FIELDS:
            raise SettingError(f"header {name!r}: give it for one site, with its scheme, in `credentials`")
        (secret if is_secret(name, value) else shown).append(f"{name}: {value}")
    return tuple(shown), tuple(secret)


def _field(text: str) -> tuple[str, str]:
    """Name and value of `Name: value`."""
    field = _FIELD.match(text)
    if field is None:
        # The name alone is told, if there is one: the rest may be a secret.
        name, colon, _ = text.partition(":")
        shown = f" {name!r}" if colon else ""
        raise SettingError(f"header{shown}: write it as `Name: value`, in visible ASCII characters")
    if field[1].lower() in RESERVED_FIELDS:
        raise SettingError(f"header {field[1]!r}: it is not a field that can be set here")
    return field[1], field[2]


#: Stands for the port of a site where a field is for all ports of a host.
EVERY_PORT = ":*"


def credentials(entries: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Fields by the site that gets them, of entries `SITE Name: value`, as `https://a.test Authorization: Bearer x`.

    SITE has its scheme and port, or `*` for every port, as `https://a.test:*`. Raises SettingError: an entry cannot be read;
    says how it is written, and nothing of its value."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        text, _, field = entry.partition(" ")
        try:
            site = site_of(canonical(text.removesuffix(EVERY_PORT))) + EVERY_PORT * text.endswith(EVERY_PORT)
        except UnreadableUrl:
            site = ""
        if not site or scheme_of(site) not in ("http", "https") or not authority_of(site):
            raise SettingError("credentials: write an entry as `SITE Name: value`, SITE as https://example.org:8080")
        name, value = _field(field)
        found[site] = (*found.get(site, ()), f"{name}: {value}")
    return found


def own_fields(request: Requested) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a request of a user's own: those that the archive keeps, and those that it must not.

    What sends a body says what it is: without a word of its own, the fields of a form.
    """
    shown: list[str] = []
    secret: list[str] = []
    for name, value in request.headers:
        (secret if is_secret(name, value) else shown).append(f"{name}: {value}")
    if has_body(request) and not any(name.lower() == "content-type" for name, _ in request.headers):
        shown.append("Content-Type: application/x-www-form-urlencoded")
    return tuple(shown), tuple(secret)


def with_cookie(shown: tuple[str, ...], own: tuple[str, ...], cookie: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a request with what the server's cookies say. There is one such field: where the request has cookies of its
    own, both stand in it, and the archive has neither."""
    for index, field in enumerate(own):
        name, _, value = field.partition(": ")
        if name.lower() == "cookie":
            return shown, (*own[:index], f"{name}: {cookie}; {value}", *own[index + 1 :])
    return (*shown, f"Cookie: {cookie}"), own


def has_body(request: Requested) -> bool:
    """A body is sent, be it an empty one."""
    return bool(request.body) or request.method in ("POST", "PUT", "PATCH")


def conditional_fields(task: Task) -> tuple[str, ...]:
    """The fields that ask for a document only if it has changed since `task`'s copy (RFC 9110, section 13.1)."""
    fields: list[str] = []
    if _VALIDATOR.match(task.etag):
        fields.append(f"If-None-Match: {task.etag}")
    if _VALIDATOR.match(task.last_modified):
        fields.append(f"If-Modified-Since: {task.last_modified}")
    return tuple(fields)
