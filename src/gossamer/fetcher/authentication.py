"""Credentials and cookies: the fields of a request that prove who asks, and the cookies that servers set.

Place in the flow: the protocol module for http asks here for the fields of each request, and hands each answer on through here.
Secrets that open pages to a person are never archived, neither those that are sent nor those that an answer sets. They stand in
the environment or in a file that a person names beside the settings, so that no configuration has them; the assembly of a crawl
refuses early what cannot be read.
"""

import base64
import codecs
import os
import re
import stat
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.errors import SettingError, refusing
from gossamer.fetcher import request
from gossamer.fetcher.cookies import COOKIES, IN_ALL, MAX_AGE, Cookie, CookieJar, CookieLog, fits
from gossamer.fetcher.request import HttpSheet
from gossamer.values import url as urls
from gossamer.values.errors import UnreadableUrl
from gossamer.values.hosts import below_suffix
from gossamer.values.outcome import Outcome
from gossamer.values.patterns import lazy_pattern
from gossamer.values.request_identity import Requested, Way
from gossamer.values.task import Task
from gossamer.values.url import canonical, is_machine
from gossamer.values.visit import Response

#: Bytes that tell the cookies of a request from those of another of its way: ten at most are compared.
_DIGEST_BYTES = 8

#: Stands in the archive for the value of a cookie of a person's own.
NOT_KEPT = "(not kept)"
_SET_COOKIE = lazy_pattern(rb"(?im)^(set-cookie2?[ \t]*:)[ \t]*(?:([^=;\r\n]*)=)?[^;\r\n]*")


class Authentication:
    """Credentials and cookies of a crawl."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Nothing is read yet; `now` gives seconds since the epoch."""
        self._now = now
        self._jars: dict[str, CookieJar] | None = None
        """By session; none where cookies are off. Tasks without a session share the one without a name."""
        self._granted: dict[tuple[str, str], str] = {}
        """By session and site."""
        self._log: CookieLog | None = None
        self._given = CookieJar()
        """The cookies that a person gave."""
        self._filled_from = ""
        self._key = os.urandom(16)

    def read(self, sheet: HttpSheet) -> None:
        """Go by a sheet. Cookies stay, unless they are switched off or begin with another file. Raises SettingError: a secret,
        a field or a cookie cannot be used."""
        self._credentials = request.credentials(given_credentials(sheet.credentials))
        self._host_fields = request.host_fields(sheet.headers) if sheet.headers else None
        self._keeps = sheet.cookies == "keep" and bool(sheet.directory)
        self._is_private = sheet.cookies == "keep" or bool(sheet.cookie_file)
        if sheet.cookies == "off" and not sheet.cookie_file:
            self.close()
            self._jars = None
        elif self._jars is None or sheet.cookie_file != self._filled_from:
            self.close()
            self._given = CookieJar()
            if sheet.cookie_file:
                fill(self._given, Path(sheet.cookie_file), self._now())
            self._jars = {"": self._filled()}
        self.has_cookies = self._jars is not None
        self.says_nothing = not (self._credentials or self._host_fields or self._granted or self.has_cookies)
        """No field is added but to requests that name their own."""
        self._filled_from = sheet.cookie_file
        self._directory = sheet.directory

    def open(self) -> None:
        """Go on with the cookies that an earlier run has kept, where they are kept. Raises OSError: their file cannot be read
        or written."""
        if self._keeps and self._jars is not None and self._log is None:
            self._log = CookieLog(Path(self._directory) / COOKIES, self._jars, self._now())

    def close(self) -> None:
        """Close the file of kept cookies."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _filled(self) -> CookieJar:
        """A jar with the cookies of the person's file: sessions begin with it."""
        jar, now = CookieJar(), self._now()
        for domain, cookie in self._given.every():
            jar.keep(domain, cookie, now)
        return jar

    def jar_of(self, task: Task) -> CookieJar | None:
        """The cookies of the session that asks; None where cookies are off."""
        if self._jars is None:
            return None
        session = "" if task.request is None else task.request.session
        jar = self._jars.get(session)
        if jar is None:
            jar = self._jars[session] = self._filled()
        return jar

    def has_entered(self, url: str, session: str = "") -> bool:
        if self._log is None or self._jars is None or (session, url) not in self._log.entered:
            return False
        jar = self._jars.get(session)
        return jar is not None and bool(jar.field(url, self._now()))

    def note_entered(self, url: str, session: str = "") -> None:
        if self._log is not None:
            self._log.enter(url, session)

    def grant(self, url: str, field: str, session: str = "") -> None:
        self._granted[session, urls.site_of(url)] = field
        self.says_nothing = False

    def renew(self, session: str) -> None:
        if self._jars is not None:
            self._jars.pop(session, None)
        for whose in [whose for whose in self._granted if whose[0] == session]:
            del self._granted[whose]
        if self._log is not None:
            self._log.renew(session)

    def fields_of(
        self, task: Task, sent: Requested | None, jar: CookieJar | None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The fields of this request alone: those that the archive keeps, and those that it must not; `jar`: of its session."""
        shown: tuple[str, ...] = ()
        own: tuple[str, ...] = ()
        if sent is not None:
            shown, own = request.own_fields(sent)
        elif task.etag or task.last_modified:
            shown = request.conditional_fields(task)
        secret: tuple[str, ...] = ()
        if self._credentials:
            of_host = f"{urls.scheme_of(task.url)}://{urls.host_of(task.url)}{request.EVERY_PORT}"
            secret = (*self._credentials.get(urls.site_of(task.url), ()), *self._credentials.get(of_host, ()))
        if self._host_fields is not None and (fields := self._host_fields.get(urls.host_of(task.url))):
            shown, secret = (*shown, *fields[0]), (*secret, *fields[1])
        session = "" if task.request is None else task.request.session
        if self._granted and (granted := self._granted.get((session, urls.site_of(task.url)))):
            secret = (*secret, granted)
        if jar is not None and (cookie := jar.field(task.url, self._now())):
            if self._is_private:
                hidden, own = request.with_cookie((), own, cookie)
                secret = (*secret, *hidden)
            else:
                shown, own = request.with_cookie(shown, own, cookie)
        return shown, (*secret, *own)

    def _told_apart(self, field: str) -> str:
        """A digest that tells some cookies from others, and says nothing of them: they may be a person's own."""
        return blake2b(field.encode("latin-1"), digest_size=_DIGEST_BYTES, key=self._key).hexdigest()

    def received(self, task: Task, jar: CookieJar | None, response: Response, now: float) -> Response:
        """Take the cookies of an answer, and return it as it may be kept.

        Args:
            task: that was asked for.
            jar: of the session that asked, as :meth:`jar_of` gave it then: a session may have begun anew since.
            response: the answer.
            now: when it was asked for.

        Raises:
            OSError: what it sets cannot be written down.
        """
        if jar is None or self._jars is None:
            return response
        before = jar.field(task.url, now)
        changed = jar.receive(task.url, response.headers, now)
        if response.outcome is Outcome.REDIRECT and (target := _target(task.url, response)):
            asked = task.request.way.asked if task.request is not None and task.request.way is not None else ()
            way = Way((*asked, (task.url, self._told_apart(before))), self._told_apart(jar.field(target, now)))
            response = msgspec.structs.replace(response, way=way)
        session = "" if task.request is None else task.request.session
        if self._log is not None and self._jars.get(session) is jar:
            self._log.add(changed, session)
        return without_cookies(response) if self._is_private else response


def _target(url: str, response: Response) -> str:
    """The target of a redirect; empty where it is no URL."""
    try:
        return urls.canonical(urls.of_field(response.header("location")), url)
    except UnreadableUrl:
        return ""


def without_cookies(response: Response) -> Response:
    """The answer with the names of the cookies that it sets, and not their values."""
    if not any(name in ("set-cookie", "set-cookie2") for name, _ in response.headers):
        return response
    return msgspec.structs.replace(
        response,
        response_head=_SET_COOKIE.sub(_blanked, response.response_head),
        headers=tuple(
            (name, _blank_value(value) if name in ("set-cookie", "set-cookie2") else value)
            for name, value in response.headers
        ),
    )


def _blanked(line: re.Match[bytes]) -> bytes:
    name = b"" if line[2] is None else line[2] + b"="
    return line[1] + b" " + name + NOT_KEPT.encode()


def _blank_value(value: str) -> str:
    name, equals, _ = value.partition(";")[0].partition("=")
    return f"{name if equals else ''}{equals}{NOT_KEPT}"


#: `$NAME` of the environment, or `@FILE`: where a secret stands.
REFERENCE = lazy_pattern(r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)|@(?P<file>[^\0\n:]+)")

#: Bytes of a file with a secret, and of one with cookies, at most.
_LARGEST_SECRET = 64 << 10
LARGEST_COOKIES = 16 << 20

_TOKEN = lazy_pattern(r"(?i)bearer +(?P<token>[\x21-\x7e]+)")


def given_credentials(entries: Iterable[str]) -> tuple[str, ...]:
    """Entries `SITE Name: value`; one that is `SITE $NAME` or `SITE @FILE` has its secret from there. Raises SettingError: a
    secret is not there, or others can read its file; says nothing of it."""
    found = []
    for entry in entries:
        site, _, rest = entry.partition(" ")
        found.append(f"{site} {field_of(rest)}" if REFERENCE.fullmatch(rest) else entry)
    return tuple(found)


def field_of(reference: str) -> str:
    """The `Authorization` field that a secret makes: `USER:PASSWORD`, or `Bearer TOKEN`. Raises SettingError: it is not there,
    or is neither."""
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
        text = os.environ.get(match["name"], "").strip()
        if not text:
            raise SettingError(f"{what}: the environment has no {match['name']}; set it before the crawl starts")
        return text
    return private(Path(match["file"]), most).decode("utf-8-sig", "replace").strip()


def private(path: Path, most: int) -> bytes:
    """A file that only its owner can read."""
    with refusing(SettingError, f"{path} cannot be read"), path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise SettingError(f"{path} can be read by others; close it: chmod 600 {path}")
        content = file.read(most + 1)
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
    content = private(path, LARGEST_COOKIES).removeprefix(codecs.BOM_UTF8)
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
    except ValueError as error:
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


#: Cells of a line of cookies.txt, and the time in it; some programs write parts of seconds.
_CELLS, _SECONDS = 7, lazy_pattern(r"-?[0-9]+(?:\.[0-9]*)?")


def _of_lines(content: bytes, path: Path) -> list[tuple[str, Cookie]]:
    found = []
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), 1):
        text = line.removeprefix("#HttpOnly_")
        if not text.strip() or text.startswith("#"):
            continue
        cells = text.split("\t")
        cells += [""] * (len(cells) == _CELLS - 1)  # a cookie without a value, as curl reads one
        if len(cells) != _CELLS or not _SECONDS.fullmatch(cells[4]):
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
