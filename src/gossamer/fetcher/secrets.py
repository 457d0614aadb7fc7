"""Secrets of the environment or of a file, and cookies: a person gives them beside the settings, so that no configuration has them.

Used by the protocol modules when they start, and by the assembly, which refuses early what cannot be read.
"""

import base64
import codecs
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.errors import SettingError
from gossamer.fetcher.cookies import IN_ALL, MAX_AGE, Cookie, CookieJar, fits
from gossamer.values.errors import UnreadableUrl
from gossamer.values.hosts import below_suffix
from gossamer.values.url import canonical, is_machine

#: `$NAME` of the environment, or `@FILE`: where a secret stands.
REFERENCE = re.compile(r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)|@(?P<file>[^\0\n:]+)")

#: Bytes of a file with a secret, and of one with cookies, at most.
_LARGEST_SECRET = 64 << 10
_LARGEST_COOKIES = 16 << 20

_TOKEN = re.compile(r"(?i)bearer +(?P<token>[\x21-\x7e]+)")


def given_credentials(entries: Iterable[str]) -> tuple[str, ...]:
    """Entries `SITE Name: value`; one that is `SITE $NAME` or `SITE @FILE` has its secret from there.

    Raises:
        SettingError: a secret is not there, or others can read its file; says nothing of it.
    """
    found = []
    for entry in entries:
        site, _, rest = entry.partition(" ")
        found.append(f"{site} {field_of(rest)}" if REFERENCE.fullmatch(rest) else entry)
    return tuple(found)


def field_of(reference: str) -> str:
    """The `Authorization` field that a secret makes: `USER:PASSWORD`, or `Bearer TOKEN`.

    Raises:
        SettingError: it is not there, or is neither.
    """
    text = secret_of(reference)
    if token := _TOKEN.fullmatch(text):
        return f"Authorization: Bearer {token['token']}"
    if ":" not in text or not text.isprintable():
        raise SettingError(f"credentials: {reference} has to hold USER:PASSWORD, or Bearer TOKEN")
    return f"Authorization: Basic {base64.b64encode(text.encode()).decode()}"


def secret_of(reference: str, what: str = "credentials", most: int = _LARGEST_SECRET) -> str:
    """The text of a variable of the environment or of a file.

    Args:
        reference: `$NAME` or `@FILE`.
        what: it is, for the error.
        most: bytes of a file.

    Raises:
        SettingError: it is not there, others can read its file, or nothing is referred to.
    """
    match = REFERENCE.fullmatch(reference)
    if match is None:
        raise SettingError(f"{what}: name a variable as $NAME, or a file as @FILE")
    if match["name"]:
        return _variable(match["name"], what)
    return _private(Path(match["file"]), most).decode("utf-8-sig", "replace").strip()


def _variable(name: str, what: str) -> str:
    text = os.environ.get(name, "").strip()
    if not text:
        raise SettingError(f"{what}: the environment has no {name}; set it before the crawl starts")
    return text


def _private(path: Path, most: int) -> bytes:
    """A file that only its owner can read."""
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise SettingError(f"{path} can be read by others; close it: chmod 600 {path}")
            content = file.read(most + 1)
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise SettingError(f"{path} is larger than {most:,} bytes")
    return content


# -- cookies


class ExportedCookie(msgspec.Struct, frozen=True):
    """A cookie as browsers and their tools export it."""

    name: str
    value: str
    domain: str
    path: str = "/"
    secure: bool = False
    expires: float | None = None
    expiration: float | None = msgspec.field(default=None, name="expirationDate")
    host_only: bool | None = msgspec.field(default=None, name="hostOnly")


def fill(jar: CookieJar, path: Path, now: float) -> int:
    """Put the cookies of a file into a jar; returns how many. Those that have ended are left out.

    Args:
        jar: what requests take their cookies from.
        path: in Netscape's form (`cookies.txt`), or JSON: a list of cookies, or an object with one under `cookies`.
        now: seconds since the epoch.

    Raises:
        SettingError: the file cannot be read, others can read it, or it holds something else; names the line.
    """
    content = _private(path, _LARGEST_COOKIES).removeprefix(codecs.BOM_UTF8)
    read = _of_json(content, path) if content.lstrip()[:1] in (b"[", b"{") else _of_lines(content, path)
    count = 0
    for domain, cookie in read[:IN_ALL]:
        expires = min(cookie.expires or now + MAX_AGE, now + MAX_AGE)
        if expires > now:
            jar.keep(domain, msgspec.structs.replace(cookie, expires=expires), now)
            count += 1
    return count


def _of_json(content: bytes, path: Path) -> list[tuple[str, Cookie]]:
    try:
        plain: Any = msgspec.json.decode(content)
        listed = plain.get("cookies", []) if isinstance(plain, dict) else plain
        exported = msgspec.convert(listed, list[ExportedCookie])
    except msgspec.MsgspecError as error:
        raise SettingError(f"{path} holds no list of cookies: {error}") from None
    return [
        _checked(
            f"{path}: cookie {number}",
            one.name,
            one.value,
            one.domain,
            one.path,
            is_shared=one.domain.startswith(".") if one.host_only is None else not one.host_only,
            is_secure=one.secure,
            expires=one.expires if one.expires is not None else one.expiration,
        )
        for number, one in enumerate(exported, 1)
    ]


def _of_lines(content: bytes, path: Path) -> list[tuple[str, Cookie]]:
    found = []
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), 1):
        text = line.removesuffix("\r").removeprefix("#HttpOnly_")
        if not text.strip() or text.startswith("#"):
            continue
        cells = text.split("\t")
        if len(cells) != 7 or not cells[4].removeprefix("-").isdigit():
            raise SettingError(f"{path}, line {number}: write seven cells with tabs between them, as in cookies.txt")
        domain, shared, place, secure, expires, name, value = cells
        found.append(
            _checked(
                f"{path}, line {number}",
                name,
                value,
                domain,
                place,
                is_shared=shared.upper() == "TRUE",
                is_secure=secure.upper() == "TRUE",
                expires=float(expires[:15]),
            )
        )
    return found


def _checked(
    where: str,
    name: str,
    value: str,
    domain: str,
    path: str,
    *,
    is_shared: bool,
    is_secure: bool,
    expires: float | None,
) -> tuple[str, Cookie]:
    """A cookie with the domain that it is for: what a server could not set, a file cannot either."""
    host = domain.lower().removeprefix(".")
    name, value = (text.encode().decode("latin-1") for text in (name, value))  # sent in UTF-8, an octet a character
    if not _is_host(host) or not fits(name, value) or not path.startswith("/"):
        raise SettingError(f"{where} is not a cookie that can be sent")
    is_shared = is_shared and bool(below_suffix(host))
    # A cookie of a session has no end: 0, or -1.
    end = expires if expires is not None and expires > 0 else 0.0
    return host, Cookie(name, value, path, "" if is_shared else host, is_secure, end)


def _is_host(text: str) -> bool:
    try:
        return is_machine(text) and canonical(f"http://{text}/") == f"http://{text}/"
    except UnreadableUrl:
        return False
