"""SURT keys: the form of a URL by which archives sort and look up (`com,example)/path?a=1`). Pure.

Replay tools find a capture only if their key and that of the index are the same byte for byte, so this is the rule of the
Internet Archive's tools, from which pywb, cdxj-indexer and py-wacz take theirs: scheme, `www.` and default port go; host labels
are reversed; path and query are unescaped as long as that changes them, escaped once and put in lower case; dots and empty
segments of the path are resolved, its last slash goes; session numbers go; arguments are sorted. Tested against pywb's keys.

It is coarser than Gossamer's own canonical form: several URLs may share a key, which is why an index line names the URL.
"""

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

from gossamer.model.url import authority_of, endpoint_of, path_of

#: Characters beside letters and digits that are written as they are; all others become `%xx`.
_PLAIN = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"

_WWW = re.compile(r"www\d*\.")

#: Session numbers in paths of ASP.NET: `/(S(24 characters))/` or `/(24 characters)/` before a page.
_PATH_SESSIONS = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", re.DOTALL),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)", re.DOTALL),
)

#: Arguments that are session numbers, each up to the next `&` or the end.
_QUERY_SESSIONS = tuple(
    re.compile(rf"{pattern}(?=&|\Z)", re.IGNORECASE)
    for pattern in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt(url: str) -> str:
    """The key of a canonical URL."""
    host, port = endpoint_of(url)
    if not host:
        return url
    path, mark, query = path_of(url).partition("?")
    www = _WWW.match(host)
    name = ",".join(reversed(host[www.end() if www else 0 :].split(".")))
    # A canonical URL writes no default port, so one that is written belongs to the key.
    at = f":{port}" if authority_of(url).endswith(f":{port}") else ""
    key = f"{name}{at}){_path(path)}"
    query = _query(query) if mark else ""
    return f"{key}?{query}" if query else key


def _unescaped(text: str) -> bytes:
    """Unescaped until nothing changes: a URL is short, so the rounds are few."""
    data = text.encode("utf-8", "replace")
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return data


def _path(path: str) -> str:
    """Dots and empty segments resolved, in lower case, without a slash at its end."""
    kept: list[bytes] = []
    for segment in _unescaped(path).split(b"/")[1:]:
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    text = ("/" + "/".join(quote_from_bytes(segment, safe=_PLAIN) for segment in kept if segment)).lower()
    for pattern in _PATH_SESSIONS:
        if match := pattern.fullmatch(text):
            text = match[1] + match[2]
    return text


def _query(query: str) -> str:
    """Without session numbers, in lower case, arguments sorted by name, then value."""
    text = quote_from_bytes(_unescaped(query), safe=_PLAIN)
    for pattern in _QUERY_SESSIONS:
        for match in reversed(list(pattern.finditer(text))):
            text = text[: match.start()] + text[match.end() + 1 :]
            break
    text = text.lower()
    if len(text) <= 1:
        return text
    return "&".join("=".join(pair) for pair in sorted(argument.split("=", 1) for argument in text.split("&")))
