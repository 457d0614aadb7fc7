"""URLs: one canonical form, parsed once by the WHATWG algorithm (ada), plain `str` everywhere after.

A canonical URL is the WHATWG serialisation without fragment and without user-info. It is a plain string because
tens of links a page are compared, hashed and stored: an object for each would cost more than the page's parse.
The scheme, host and port of a canonical URL are found by slicing, never by a second parser (fault 34:
one parser for the check and for the fetch).
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from urllib.parse import unquote

import ada_url

from gossamer.values.errors import UnreadableUrl, UrlTooLong

#: Bytes of the longest URL that is kept (design question 12); servers and archives of the field agree on about 2 KB.
MAX_URL_BYTES = 2048

#: Characters of the longest text that is parsed at all. Dot segments and white space let a URL shrink, but no page has so
#: many; a link of a megabyte costs 30 ms (faults 32, 39).
MAX_TEXT = 16 * MAX_URL_BYTES

_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "gopher": 70}

#: Schemes whose URLs always have an authority: one that is written without is none of them. Of others, a protocol module decides.
WITH_AUTHORITY = frozenset({*_DEFAULT_PORTS, "file"})


# URLs that the parser would leave alone, as most are: segments with nothing to escape, none a dot segment (none begins with a
# dot, and no escape stands for one), no colon that could end a scheme. In front of a whole URL a name of lower-case letters, digits
# and hyphens whose last label is no number, or an address of four numbers; perhaps a port that is not its scheme's. Linear: the
# end of a repetition never begins the next.
_FIRST, _NEXT = r"[0-9A-Za-z_~%!$&'()*+,;=@-]", r"[0-9A-Za-z_.~%!$&'()*+,;=@-]"
_PATH = rf"(?:{_FIRST}{_NEXT}*/)*(?:{_FIRST}{_NEXT}*)?"
_PLAIN_PATH = re.compile(_PATH).fullmatch
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PLAIN_HOST = rf"(?:[0-9a-z][0-9a-z-]*\.)*[a-z]+|{_BYTE}(?:\.{_BYTE}){{3}}"
_PORT = r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3})"
_PLAIN_PORT = rf"(?::(?!(?:80|443)/){_PORT})?"
_PLAIN_REST = rf"/{_PATH}(?:\?[0-9A-Za-z_.~%!$&()*+,;:=@/?-]+)?"
_PLAIN_URL = re.compile(rf"https?://({_PLAIN_HOST}){_PLAIN_PORT}{_PLAIN_REST}").fullmatch
#: The schemes of such URLs.
PLAIN_SCHEMES = frozenset({"http", "https"})


def plain_host(url: str) -> str:
    """The host of a URL that is canonical for certain, in a fifth of the parser's time; empty where only the parser can tell."""
    # International names (`xn--`) are for ada to judge.
    if len(url) > MAX_URL_BYTES or "xn--" in url or _has_escaped_dot(url):
        return ""
    match = _PLAIN_URL(url)
    return "" if match is None else match[1]


@lru_cache(maxsize=1)
def are_plain(urls: tuple[str, ...]) -> bool:
    """Whether all of them are canonical for certain, as most long lists of seeds are: in a tenth of the time of asking
    :func:`plain_host` of each, and at once where the list is asked about again.
    """
    whole = "\n".join(urls)
    if "xn--" in whole or _has_escaped_dot(whole) or max(map(len, urls), default=0) > MAX_URL_BYTES:
        return False
    if len(urls) > _MANY and ":80/" not in whole and ":443/" not in whole and _plain_lines()(f"{whole}\n") is not None:
        return whole.count("\n") == len(urls) - 1  # none of them holds a line end
    return all(map(_PLAIN_URL, urls))


#: URLs of a list that is read at once.
_MANY = 1_000


@cache
def _plain_lines() -> Callable[[str], object]:
    """The same for lines, where no port is that of a scheme. RE2 takes a fifth of the time; few crawls have so many seeds."""
    import re2

    matches: Callable[[str], object] = re2.compile(
        rf"(?:https?://(?:{_PLAIN_HOST})(?::{_PORT})?{_PLAIN_REST}\n)*"
    ).fullmatch
    return matches


def is_plain_path(path: str) -> bool:
    """Whether the parser would leave a path without its first slash as it is, whatever directory stands before it."""
    return _PLAIN_PATH(path) is not None and not ("%2" in path and _has_escaped_dot(path))


def _has_escaped_dot(text: str) -> bool:
    return "%2" in text and ("%2e" in text or "%2E" in text)


def canonical(text: str, base: str | None = None) -> str:
    """The canonical form of `text`, resolved against `base` where that is given. Raises UnreadableUrl: the parser refuses it;
    UrlTooLong: it is longer than :data:`MAX_URL_BYTES`."""
    if base is None and plain_host(text):
        return text
    if len(text) > MAX_TEXT:
        raise UrlTooLong(f"the link has {len(text)} characters; at most {MAX_URL_BYTES} bytes of a URL are kept")
    try:
        url = ada_url.normalize_url(text) if base is None else ada_url.join_url(base, text)
    except (ValueError, UnicodeError) as error:
        raise UnreadableUrl(f"{text[:200]!r} is not a URL") from error
    cut = url.find("#")
    if cut >= 0:
        url = url[:cut]
    if len(url) > MAX_URL_BYTES:
        raise UrlTooLong(f"the URL has {len(url)} bytes; at most {MAX_URL_BYTES} are kept")
    if "@" in url:  # a crawler that met credentials in a link must not use them (fault 34)
        scheme, _, rest = url.partition("://")
        if ":" not in scheme and rest:
            authority, slash, path = rest.partition("/")
            return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
    return url


def fault_of_url(url: str, host: str | None = None) -> str:
    """Why a URL that came from elsewhere is none that this program makes, or has another host than came with it; empty where it is
    one.
    """
    found = plain_host(url)
    if not found:
        try:
            is_canonical = canonical(url) == url
        except UnreadableUrl:
            return "it is not a URL"
        if not is_canonical:
            return "it is not in its canonical form"
        found = host_of(url)
    return "" if host is None or found == host else f"its host is given as {host[:80]!r}"


def of_field(value: str) -> str:
    """A URL reference out of a header field, a character for each byte, as :func:`canonical` reads it: its bytes beyond ASCII
    stand for themselves, and are percent-encoded one by one, whatever encoding the server wrote them in. A value with other
    characters came by no wire, and stays as it is."""
    if value.isascii():
        return value
    try:
        octets = value.encode("latin-1")
    except UnicodeEncodeError:
        return value
    return "".join([chr(octet) if octet < 0x80 else f"%{octet:02X}" for octet in octets])


def user_of(text: str) -> str:
    """`USER:PASSWORD` of a URL that a person wrote, without percent-encoding; empty where it has neither, or is no URL.

    The fetch of a link never asks for this (fault 34).
    """
    try:
        url = ada_url.URL(text)
    except ValueError:
        return ""
    return f"{unquote(url.username)}:{unquote(url.password)}" if url.username or url.password else ""


#: Schemes that a rejection is counted under by name. Pages can make up any number of others: those share one counter.
_NAMED = "about blob data file ftp gopher http https javascript mailto sms tel ws wss"
_NAMED_SCHEMES = frozenset(_NAMED.split())


def scheme_rule(url: str) -> str:
    """The rule that refuses a canonical URL for its scheme, as counted: `scheme:mailto`, or `scheme:other`."""
    scheme = scheme_of(url)
    return f"scheme:{scheme}" if scheme in _NAMED_SCHEMES else "scheme:other"


def scheme_of(url: str) -> str:
    """The scheme of a canonical URL, without the colon."""
    return url[: url.index(":")]


def authority_of(url: str) -> str:
    """`host` or `host:port` of a canonical URL; empty where the scheme has none (`mailto:`)."""
    start = url.find(":") + 3
    if not url.startswith("//", start - 2):
        return ""
    end = url.find("/", start)
    if end < 0:
        end = url.find("?", start)
    return url[start:] if end < 0 else url[start:end]


def site_of(url: str) -> str:
    """Scheme, host and port of a canonical URL, as `http://a.test:8080`: what robots.txt goes by (design question 5).

    Canonical URLs leave a default port out, so that one site has one name. Empty where the scheme has no host.
    """
    start = url.find(":") + 3
    if not url.startswith("//", start - 2):
        return ""
    end = url.find("/", start)
    return url if end < 0 else url[:end]


@lru_cache(maxsize=65536)
def split_authority(scheme: str, authority: str) -> tuple[str, int]:
    """Host and port of an authority; the scheme's default port where none is written, 0 where there is none.

    An IPv6 host keeps its brackets off: `[::1]:80` gives `::1`.
    """
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, ""
    return host.strip("[]"), int(port) if port else _DEFAULT_PORTS.get(scheme, 0)


def host_of(url: str) -> str:
    """The host name of a canonical URL, without port: what politeness and scope go by (design question 5).

    A URL without an authority (`echo:x`) goes by its scheme with the colon, `echo:`, which is the name of no host; files of
    this machine (`file:///x`) go by the empty name. :func:`is_machine` tells such names from those of hosts.
    """
    # In place, since it is asked of every link: a call costs as much as the search.
    colon = url.index(":")
    start = colon + 3
    if url[colon + 1 : start] != "//":
        return url[: colon + 1]
    end = url.find("/", start)
    if end < 0:
        end = url.find("?", start)
    authority = url[start:] if end < 0 else url[start:end]
    return split_authority(url[:colon], authority)[0] if ":" in authority else authority


def with_host(url: str, host: str) -> str:
    """A canonical URL that has an authority, with another host, in the form of :func:`host_of`; the port stays."""
    authority = authority_of(url)
    _, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        colon = port = ""
    bracketed = f"[{host}]" if ":" in host else host
    return url.replace(f"//{authority}", f"//{bracketed}{colon}{port}", 1)


def is_machine(host: str) -> bool:
    """Whether what :func:`host_of` gave names something that can be looked up; an IPv6 address has more colons than one."""
    return bool(host) and host.find(":") != len(host) - 1


def endpoint_of(url: str) -> tuple[str, int]:
    """Host name and port that a request for this canonical URL is sent to."""
    colon = url.index(":")
    scheme, start = url[:colon], colon + 3  # in place, as in `host_of`: it is asked three times for a page
    if url[colon + 1 : start] != "//":
        return "", _DEFAULT_PORTS.get(scheme, 0)
    end = url.find("/", start)
    authority = url[start:end] if end >= 0 else url[start:].partition("?")[0]
    return split_authority(scheme, authority) if ":" in authority else (authority, _DEFAULT_PORTS.get(scheme, 0))


def place_of_site(site: str) -> str:
    """`host:port` of a site, as seeds are known by; empty where it names no host."""
    scheme, _, authority = site.partition("://")
    if not authority or (":" in authority and not authority.endswith("]")):
        return authority
    return f"{authority}:{_DEFAULT_PORTS.get(scheme, 0)}"


def path_of(url: str) -> str:
    """Path and query of a canonical URL, as a request line writes them; `/` where the URL has none."""
    start = url.find(":") + 1
    if not url.startswith("//", start):
        return url[start:]
    slash = url.find("/", start + 2)
    return url[slash:] if slash >= 0 else "/"
