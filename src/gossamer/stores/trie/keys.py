"""Keys of the trie: URLs with the labels of their hosts from the root, so that what belongs together lies under one prefix.

`https://www.example.org/docs/a.html` has the key `org.example.www https:/docs/a.html`. No part of a URL has a space, so that the
one in a key ends the host's name.
"""

#: Beginnings of URLs whose keys are remembered at once, 180 bytes each; then all are forgotten.
REMEMBERED = 65_536


def _reversed_name(host: str) -> str:
    """A host name from its root; an address has its root in front already, and an IPv6 address is one label."""
    labels = host.split(".")
    if not labels[-1].isdigit():
        labels.reverse()
    return ".".join(labels)


def _beginning_of(scheme_and_authority: str) -> str:
    scheme, _, authority = scheme_and_authority.partition("://")
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():
        host, port = authority, ""
    return f"{_reversed_name(host)} {scheme}:{port}"


class UrlKeys:
    """Makes keys; remembers the beginnings that it made."""

    def __init__(self) -> None:
        self._beginnings: dict[str, str] = {}

    def of(self, url: str) -> str:
        """The key of a canonical URL. Different URLs have different keys, and :func:`url_of` is the inverse."""
        slash = url.find("/", url.find("://") + 3)
        beginning = url if slash < 0 else url[:slash]
        key = self._beginnings.get(beginning)
        if key is None:
            if len(self._beginnings) >= REMEMBERED:
                self._beginnings.clear()
            key = self._beginnings[beginning] = _beginning_of(beginning)
        return key if slash < 0 else key + url[slash:]


def url_of(key: str) -> str:
    """The URL of a key."""
    name, _, rest = key.partition(" ")
    ends, slash, path = rest.partition("/")
    scheme, _, port = ends.partition(":")
    labels = name.split(".")
    if not labels[-1].isdigit() or not labels[0].isdigit():
        labels.reverse()
    return f"{scheme}://{'.'.join(labels)}{f':{port}' if port else ''}{slash}{path}"


def prefixes_of(host: str) -> tuple[str, str]:
    """What the keys of a host or domain begin with, and those of what lies below it."""
    name = _reversed_name(host)
    return f"{name} ", f"{name}."
