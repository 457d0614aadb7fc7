"""Credentials and cookies: the fields of a request that prove who asks, and the cookies that servers set.

Place in the flow: the protocol module for http asks here for the fields of each request, and hands each answer on through here.
Secrets that open pages to a person are never archived, neither those that are sent nor those that an answer sets.
"""

import os
import re
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import msgspec

from gossamer.fetcher import request
from gossamer.fetcher.cookies import COOKIES, CookieJar, CookieLog
from gossamer.fetcher.http_options import HttpSheet
from gossamer.fetcher.secrets import fill, given_credentials
from gossamer.values import url as urls
from gossamer.values.errors import UnreadableUrl
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Requested, Way
from gossamer.values.task import Task
from gossamer.values.visit import Response

#: Bytes that tell the cookies of a request from those of another of its way: ten at most are compared.
_DIGEST_BYTES = 8

#: Stands in the archive for the value of a cookie of a person's own.
_BLANK = "(not kept)"
_SET_COOKIE = re.compile(rb"(?im)^(set-cookie2?[ \t]*:)[ \t]*(?:([^=;\r\n]*)=)?[^;\r\n]*")


class Authentication:
    """Credentials and cookies of a crawl."""

    def __init__(self, sheet: HttpSheet, now: Callable[[], float]) -> None:
        """Read a sheet; `now` gives seconds since the epoch.

        Raises:
            SettingError: a secret, a field or a cookie cannot be used.
        """
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
        self.read(sheet)

    def read(self, sheet: HttpSheet) -> None:
        """Go by a new sheet. Cookies stay, unless they are switched off or begin with another file. Raises as the constructor."""
        self._credentials = request.credentials(given_credentials(sheet.credentials))
        self._host_fields = request.host_fields(sheet.headers)
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
        self._filled_from = sheet.cookie_file
        self._directory = sheet.directory

    def open(self) -> None:
        """Go on with the cookies that an earlier run has kept, where they are kept.

        Raises:
            OSError: their file cannot be read or written.
        """
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

    def renew(self, session: str) -> None:
        if self._jars is not None:
            self._jars.pop(session, None)
        for whose in [whose for whose in self._granted if whose[0] == session]:
            del self._granted[whose]
        if self._log is not None:
            self._log.renew(session)

    def fields_of(self, task: Task, sent: Requested | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The fields of this request alone: those that the archive keeps, and those that it must not."""
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
        if len(self._host_fields) and (fields := self._host_fields.get(urls.host_of(task.url))):
            shown, secret = (*shown, *fields[0]), (*secret, *fields[1])
        session = "" if task.request is None else task.request.session
        if self._granted and (granted := self._granted.get((session, urls.site_of(task.url)))):
            secret = (*secret, granted)
        jar = self.jar_of(task)
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
    return line[1] + b" " + name + _BLANK.encode()


def _blank_value(value: str) -> str:
    name, equals, _ = value.partition(";")[0].partition("=")
    return f"{name if equals else ''}{equals}{_BLANK}"
