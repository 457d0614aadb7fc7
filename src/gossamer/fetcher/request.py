"""The fields of a request that tell about us: the constant ones, and those that go to one site or with one task alone. Pure.

Credentials belong to a site (scheme, host and port): no redirect and no link takes them elsewhere, and
what the archive keeps of a request leaves them out.
"""

import re
from collections.abc import Mapping, Sequence

from gossamer._version import __version__
from gossamer.engine.errors import SettingError
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.hosts import HostTable
from gossamer.values.request_identity import CREDENTIAL_FIELDS, RESERVED_FIELDS, Requested, is_secret
from gossamer.values.task import Task
from gossamer.values.url import authority_of, canonical, scheme_of, site_of

#: Asked for in this order by browsers and crawlers alike; servers that negotiate then choose HTML.
_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\Z")
_VISIBLE = re.compile(r"[\x20-\x7e]*\Z")

#: A validator that may be sent back: no longer than any honest one, and nothing that could end a line.
_VALIDATOR = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,510}[\x21-\x7e])?\Z")


def user_agent(own: str, contact: str) -> str:
    """The User-Agent field: `Gossamer/VERSION (+CONTACT)`, unless `own` says otherwise.

    Raises:
        SettingError: it holds what cannot be sent.
    """
    text = own or f"Gossamer/{__version__}" + (f" (+{contact})" if contact else "")
    if not _VISIBLE.match(text):
        raise SettingError(f"user agent {text!r}: only visible ASCII characters can be sent")
    return text


def constant_fields(header: Sequence[str], accept_encoding: str) -> tuple[str, ...]:
    """The constant fields after Host and User-Agent, in the order in which they are sent.

    Raises:
        SettingError: a field of `header` is none, or is not to be set there.
    """
    own: dict[str, str] = {}
    for text in header:
        name, value = _field(text)
        if name.lower() in CREDENTIAL_FIELDS:
            raise SettingError(f"header {name!r}: it would go to every host; give it for one site, in `credentials`")
        own[name.lower()] = f"{name}: {value}"
    accept = own.pop("accept", f"Accept: {_ACCEPT}")
    return (accept, f"Accept-Encoding: {accept_encoding}", *own.values())


def host_fields(header: Mapping[str, Sequence[str]]) -> HostTable[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Further fields for the requests to some hosts: those that the archive keeps, and those that look secret.

    Raises:
        SettingError: a name is no host, or a field is none, or proves who asks.
    """
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

    SITE has its scheme and port, or `*` for every port, as `https://a.test:*`.

    Raises:
        SettingError: an entry cannot be read; says how it is written, and nothing of its value.
    """
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
