"""Cookies of a crawl, within bounds (RFC 6265): cookies that a server sets go back to it alone; and the file that keeps them for
the next run.

Place in the flow: :mod:`authentication` asks a jar for the field of each request, and gives it each answer. Off by default: a
crawler without cookies is the same to a server at every visit. Where they are on, a cookie lives as long as the process, or as
:class:`CookieLog` keeps it: an answer's cookies are written before the answer goes on, so that a visit is never committed without
them. Every bound drops the oldest, and a domain that is a public suffix may set none for others.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.engine.files import AppendFile
from gossamer.values.hosts import below_suffix
from gossamer.values.instants import read_date
from gossamer.values.patterns import lazy_pattern
from gossamer.values.url import host_of, path_of, scheme_of

#: Cookies of one domain, bytes of one cookie, cookies in all (RFC 6265, section 6.1 asks for no fewer).
PER_DOMAIN = 50
MAX_SIZE = 4096
IN_ALL = 3000

#: Bytes of the Cookie field of a request: servers refuse heads beyond 8 KiB.
MAX_FIELD = 8 * 1024 - len("Cookie: ")

#: Set-Cookie fields of one answer that are read.
PER_ANSWER = PER_DOMAIN

#: Seconds of the longest life that is believed: 400 days (RFC 6265bis).
MAX_AGE = 400 * 86_400.0

#: Seconds by which two ends of a cookie may differ that are taken for one: servers put it off with each answer.
SAME_END = 60.0

#: A name, a value and a path may hold any octet but control characters and the separator (RFC 6265, section 5.2). Octets
#: beyond ASCII are as fields have them, one character each.
_OCTETS = lazy_pattern(r"[^\x00-\x08\x0a-\x1f\x7f;]*\Z")
#: Blanks around a part of a field. Python's own notion would eat octets of UTF-8.
_BLANKS = " \t"
_AGE = lazy_pattern(r"-?[0-9]+\Z")
_LONGEST_PATH = 1024
_ADDRESS = lazy_pattern(r"[0-9.]+\Z|.*:")


class Cookie(msgspec.Struct, frozen=True, gc=False):
    name: str
    value: str
    path: str
    host: str
    """The only host that gets it; empty where the domain's other hosts do, too."""
    secure: bool
    expires: float
    """Seconds since the epoch."""


class CookieJar:
    """The cookies of a crawl, by domain."""

    def __init__(self) -> None:
        self._domains: OrderedDict[str, dict[tuple[str, str, str], tuple[int, Cookie]]] = OrderedDict()
        """Each cookie with its place in the order in which they were made (RFC 6265, section 5.4)."""
        self._count = 0
        self._made = 0

    def __len__(self) -> int:
        return self._count

    def receive(self, url: str, fields: tuple[tuple[str, str], ...], now: float) -> list[tuple[str, Cookie]]:
        """Take what an answer sets; returns what has changed by it, each cookie with its domain.

        Args:
            url: the canonical URL that was asked for.
            fields: its header fields, names in lower case.
            now: seconds since the epoch.
        """
        changed: list[tuple[str, Cookie]] = []
        set_fields = [value for name, value in fields if name == "set-cookie"]
        for text in set_fields[:PER_ANSWER]:
            read = _read(text, url, now)
            if read is None:
                continue
            cookie, domain = read
            if domain and not self._may_set(host_of(url), domain):
                if domain != host_of(url):
                    continue
                # A host that is a public suffix itself keeps its cookies to itself.
                domain, cookie = "", msgspec.structs.replace(cookie, host=domain)
            if self.keep(domain or cookie.host, cookie, now):
                changed.append((domain or cookie.host, cookie))
        return changed

    def _may_set(self, host: str, domain: str) -> bool:
        """A host sets cookies for itself and for domains above it, up to the registered one (RFC 6265, 5.3)."""
        inside = host == domain or (host.endswith(f".{domain}") and not _ADDRESS.match(host))
        return inside and bool(below_suffix(domain))

    def every(self) -> list[tuple[str, Cookie]]:
        """All that is held, each with its domain, the oldest first."""
        held = [(made, domain, cookie) for domain, held in self._domains.items() for made, cookie in held.values()]
        held.sort(key=lambda one: one[0])
        return [(domain, cookie) for _, domain, cookie in held]

    def keep(self, domain: str, cookie: Cookie, now: float) -> bool:
        """Keep a cookie for a domain, in place of one of the same name, path and host; drop it where it has ended.

        Returns:
            False where it says what the one before said, and ends about when that one would have.
        """
        cookies = self._domains.setdefault(domain, {})
        self._domains.move_to_end(domain)
        key = (cookie.name, cookie.path, cookie.host)
        before = cookies.pop(key, None)
        self._count -= before is not None
        if cookie.expires > now:
            while len(cookies) >= PER_DOMAIN:
                del cookies[next(iter(cookies))]
                self._count -= 1
            self._made += 1
            cookies[key] = (self._made if before is None else before[0], cookie)
            self._count += 1
        while self._count > IN_ALL:
            _, dropped = self._domains.popitem(last=False)
            self._count -= len(dropped)
        if before is None:
            return cookie.expires > now
        return before[1].value != cookie.value or abs(before[1].expires - cookie.expires) > SAME_END

    def field(self, url: str, now: float) -> str:
        """The value of the Cookie field for a request; empty where there is none to send."""
        if not self._domains:
            return ""
        host, path, secure = host_of(url), path_of(url).partition("?")[0], scheme_of(url) == "https"
        fitting = [
            (-len(cookie.path), made, cookie)
            for domain in _domains_of(host)
            for made, cookie in self._domains.get(domain, {}).values()
            if cookie.expires > now
            and cookie.host in ("", host)
            and (secure or not cookie.secure)
            and _path_fits(path, cookie.path)
        ]
        fitting.sort(key=lambda one: one[:2])  # longer paths first, then the oldest (RFC 6265, 5.4)
        sent = ""
        for _, _, cookie in fitting:
            pair = f"{cookie.name}={cookie.value}"
            joined = f"{sent}; {pair}" if sent else pair
            if len(joined) <= MAX_FIELD:
                sent = joined
        return sent


def _domains_of(host: str) -> Iterator[str]:
    """The host and every domain above it; an address has none."""
    yield host
    if not _ADDRESS.match(host):
        rest = host.partition(".")[2]
        while rest:
            yield rest
            rest = rest.partition(".")[2]


def _path_fits(path: str, cookie_path: str) -> bool:
    return path == cookie_path or (
        path.startswith(cookie_path) and (cookie_path.endswith("/") or path[len(cookie_path) :][:1] == "/")
    )


def fits(name: str, value: str) -> bool:
    """Whether a cookie can have this name and value."""
    is_short = bool(name) and len(name) + len(value) <= MAX_SIZE
    return is_short and _OCTETS.match(name) is not None and _OCTETS.match(value) is not None


def _read(text: str, url: str, now: float) -> tuple[Cookie, str] | None:
    """A Set-Cookie value as a cookie, and the domain that it is for (empty: its host); None for one to ignore.

    As RFC 6265, section 5.2 reads it: of an attribute that is there twice the last counts, and one that cannot be read counts as
    not there.
    """
    if len(text) > 2 * MAX_SIZE:
        return None
    pair, *attributes = text.split(";")
    name, _, value = (part.strip(_BLANKS) for part in pair.partition("="))
    if "=" not in pair or not fits(name, value):
        return None
    domain = path = ""
    secure, age, end = False, None, None
    for attribute in attributes:
        key, _, given = (part.strip(_BLANKS) for part in attribute.partition("="))
        match key.lower():
            case "secure":
                secure = True
            case "domain":
                domain = given.lower().removeprefix(".") if given else domain
            case "path":
                path = given if given.startswith("/") and len(given) <= _LONGEST_PATH and _OCTETS.match(given) else ""
            case "max-age" if _AGE.match(given):
                age = 0.0 if given.startswith("-") else now + min(float(given), MAX_AGE)
            case "expires":
                moment = read_date(given, zones=False)
                end = end if moment is None else min(moment, now + MAX_AGE)
            case _:  # of no matter here
                pass
    if secure and scheme_of(url) != "https":
        return None
    if name.startswith(("__Secure-", "__Host-")) and not secure:
        return None
    if name.startswith("__Host-") and (domain or path != "/"):
        return None
    path = path or path_of(url).partition("?")[0].rpartition("/")[0] or "/"
    ends = age if age is not None else end if end is not None else now + MAX_AGE
    return Cookie(name, value, path, "" if domain else host_of(url), secure, ends), domain


# The file of kept cookies: a line holds one cookie; a later line of the same cookie counts, and a line that a kill tore is dropped.

#: Where kept cookies lie in the crawl directory.
COOKIES = "state/cookies"

#: Bytes at which the file is written anew with what is still held: the largest jar has 12 MB, and few have 12 KB.
_LARGEST = 16 << 20


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    domain: str = ""
    cookie: Cookie | None = None
    entered: str = ""
    """A log-in that was run."""
    session: str = ""
    """The session that it belongs to, where a spider keeps sessions."""
    is_renewed: bool = False
    """The session begins anew: its earlier cookies are gone."""


class CookieLog:
    """The file of the jars of a crawl, one for each session: for its owner alone, it only grows while the crawl runs."""

    def __init__(self, path: Path, jars: dict[str, CookieJar], now: float) -> None:
        """Fill jars with what a file holds, and go on with that file.

        Args:
            path: of the file.
            jars: by session; the one without a name is there. Those of sessions that the file has are added.
            now: seconds since the epoch.

        Raises:
            OSError: it cannot be read or written.
        """
        self._path = path
        self._jars = jars
        path.parent.mkdir(parents=True, exist_ok=True)
        self.entered: set[tuple[str, str]] = set()
        """Log-ins that were run: session and name."""
        for line in _lines(path):
            if line.is_renewed:
                jars.pop(line.session, None)
                self._leave(line.session)
            elif line.cookie is not None:
                jars.setdefault(line.session, CookieJar()).keep(line.domain, line.cookie, now)
            elif line.entered:
                self.entered.add((line.session, line.entered))
        self._file = self._anew()

    def _anew(self) -> AppendFile:
        """The file with nothing in it but what is held."""
        lines = [
            _Line(domain, cookie, session=session)
            for session, jar in self._jars.items()
            for domain, cookie in jar.every()
        ]
        lines += [_Line(entered=name, session=session) for session, name in sorted(self.entered)]
        _write(self._path, lines)
        return AppendFile(self._path, fresh=False, mode=0o600)

    def _leave(self, session: str) -> None:
        self.entered = {one for one in self.entered if one[0] != session}

    def enter(self, name: str, session: str = "") -> None:
        """Write down that a session has run a log-in. Raises as :meth:`add`."""
        if (session, name) not in self.entered:
            self._file.append(_packed(_Line(entered=name, session=session)))
            self.entered.add((session, name))

    def renew(self, session: str) -> None:
        """Write down that a session begins anew. Raises as :meth:`add`."""
        self._file.append(_packed(_Line(session=session, is_renewed=True)))
        self._leave(session)

    def add(self, changed: list[tuple[str, Cookie]], session: str = "") -> None:
        """Write down what has changed in the jar of a session. Raises OSError: it cannot be written; nothing of it is."""
        if changed:
            self._file.append(b"".join(_packed(_Line(domain, cookie, session=session)) for domain, cookie in changed))
        if self._file.end > _LARGEST:
            self._file.close()
            self._file = self._anew()

    def close(self) -> None:
        self._file.close()


def forget_cookies(path: Path, is_gone: Callable[[str], bool]) -> int:
    """Take the cookies of some hosts out of a file that no crawl is using; returns how many went.

    A cookie of a domain stays while the domain does: any host below it may have set it. `path`: the file; one that is not there
    holds none; `is_gone`: whether a host or domain goes. Raises OSError: it cannot be read or written; what stood there stands
    there."""
    path.with_name(f"{path.name}.new").unlink(missing_ok=True)  # a kill may have left a copy of all
    lines = _lines(path)
    kept = [line for line in lines if not is_gone(line.domain)]
    if len(kept) < len(lines):
        _write(path, kept)
    return len(lines) - len(kept)


def _lines(path: Path) -> list[_Line]:
    """The lines of a file, nothing where there is none. Other text is passed over. Raises OSError: it cannot be read."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for line in content.split(b"\n"):
        with suppress(ValueError):
            found.append(msgspec.json.decode(line, type=_Line))
    return found


def _write(path: Path, lines: list[_Line]) -> None:
    """Put a file with these lines in the place of the one before, for its owner alone. Raises OSError: it cannot be written;
    what stood there stands there."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(b"".join(map(_packed, lines)))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _packed(line: _Line) -> bytes:
    return msgspec.json.encode(line) + b"\n"
