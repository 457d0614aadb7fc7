"""The guard of the dashboard: decides who may ask for what, before anything else sees a request.

Place in the flow: around the whole application (:mod:`app`). A browser carries the requests of every page that a person has open,
so that being on this machine proves nothing:

- The `Host` must be an address, `localhost`, or the name that the dashboard was given: a foreign name that leads here
  (DNS rebinding) is refused.
- What another origin sends is refused by `Origin` and `Sec-Fetch-Site`, before it is known whether it bears a key.
- A key is taken from `Authorization: Bearer`, or from the address that the dashboard prints. The latter is answered with a cookie
  that no script can read and no other site can send (`HttpOnly`, `SameSite=Strict`), and with the address without the key. The
  cookie is no key: it is good for this process alone, since browsers show it to other ports of this machine.
- A replayed page has no origin and sends no cookie: an address of a replay is let in by its signature alone
  (:mod:`questions`).
- What changes something needs the full key, and a body that is JSON, which no form of another site can send.
"""

import enum
import hmac
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Scope

from gossamer.analysis.replaying import REPLAY
from gossamer.crawls.http_server import Guard, length_of, names_server, parted_host, refusal
from gossamer.engine.files import NotPrivate, private
from gossamer.values.errors import UsageError

# The two keys of a user's dashboards: one for everything, one for looking. They lie in a file that only the user can read.

#: Random bytes of a key.
LENGTH = 32


class Access(enum.IntEnum):
    NOTHING = 0
    READ = 1
    FULL = 2


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    full: str
    read: str

    def access(self, key: str) -> Access:
        """The rights of a key; takes as long for a wrong one as for a right one."""
        given = key.encode("utf-8", "replace")
        is_full = hmac.compare_digest(given, self.full.encode())
        is_read = hmac.compare_digest(given, self.read.encode())
        return Access.FULL if is_full else Access.READ if is_read else Access.NOTHING


def read_keys(path: Path) -> Keys:
    """The keys in this file; where there is none it is made, with new ones.
    Raises UsageError: the file cannot be read or made, holds something else, or others can read it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make(path)
        with private(path) as file:
            found = msgspec.json.decode(file.read(4096), type=Keys)
    except NotPrivate:
        raise UsageError(f"{path} holds keys, and others can read it; remove it, and new keys are made") from None
    except OSError as error:
        raise UsageError(f"the keys of the dashboard cannot be kept in {path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{path} holds no keys of a dashboard; remove it, and new keys are made") from None
    if min(len(found.full), len(found.read)) < LENGTH or found.full == found.read:
        raise UsageError(f"the keys in {path} are too short or alike; remove it, and new keys are made")
    return found


def _make(path: Path) -> None:
    """Whole or not at all, and never over a file that another dashboard has just made."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(Keys(secrets.token_urlsafe(LENGTH), secrets.token_urlsafe(LENGTH))))
        try:
            path.hardlink_to(fresh)
        except FileExistsError:
            pass  # another one was quicker: both go by its keys
    finally:
        fresh.unlink()


#: Methods that are answered; the first two change nothing.
METHODS = ("GET", "HEAD", "POST")

#: Bytes of a body that are read at most: a list of some thousand hosts.
MAX_BODY = 1 << 18

#: Characters of a path with its query at most: a URL that is asked for, escaped.
MAX_TARGET = 16_384

#: Browsers that are remembered at once; the one that came first is forgotten.
MAX_SESSIONS = 256

#: Said with every answer: nothing but our own files is loaded, no script stands in a page, no site shows us in a frame.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

#: The key of a scope under which the application finds what the asker may do.
ACCESS = "gossamer.access"


class DashboardGuard(Guard):
    """Lets in browsers and programs that have a key."""

    headers = HEADERS
    max_body = MAX_BODY

    def __init__(
        self,
        app: ASGIApp,
        keys: Keys,
        port: int,
        *,
        name: str = "127.0.0.1",
        scheme: str = "http",
        is_given: Callable[[bytes], bool] = lambda query: False,
    ) -> None:
        """Guard an application that listens at this port, and at this address or name, which may stand in `Host`; `is_given`
        says of the query of an address of a replay whether it was given out and is still good."""
        super().__init__(app)
        self._keys = keys
        self._port = port
        self._name = name.lower()
        self._scheme = scheme
        self._is_given = is_given
        self._cookie = f"gossamer-{port}"
        self._sessions: OrderedDict[str, Access] = OrderedDict()

    def refused(self, scope: Scope) -> Response | None:
        """The answer to a request that goes no further; None lets it in, with :data:`ACCESS` in its scope."""
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._is_ours(host):
            return refusal(HTTPStatus.MISDIRECTED_REQUEST, "the request names another host than the dashboard")
        if method not in METHODS:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET, HEAD and POST are answered")
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > MAX_TARGET:
            return refusal(HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long")
        if path == REPLAY:
            if method != "POST" and self._is_given(scope["query_string"]):
                return None
            told = "this address is not valid, or no longer; open the replay from the dashboard"
            return refusal(HTTPStatus.FORBIDDEN, told)
        if self._is_foreign(headers, host, is_entry=path == "/" and method == "GET"):
            return refusal(HTTPStatus.FORBIDDEN, "this request comes from another site, and gets no answer")
        if path == "/" and method == "GET" and b"token=" in scope["query_string"]:
            return self._entered(scope["query_string"])
        access, is_cookie = self._access(headers)
        if access is Access.NOTHING:
            return refusal(
                HTTPStatus.UNAUTHORIZED,
                "open the address that gossamer printed, with the token in it, or send the token as a bearer token",
                {"WWW-Authenticate": 'Bearer realm="gossamer"'},
            )
        if method == "POST":
            refused = _unsafe(headers, access, is_cookie=is_cookie)
            if refused is not None:
                return refused
        scope[ACCESS] = access
        return None

    def _is_ours(self, host: str) -> bool:
        name, port = parted_host(host)
        usual = "443" if self._scheme == "https" else "80"
        return (port or usual) == str(self._port) and names_server(name, self._name)

    def _is_foreign(self, headers: Headers, host: str, *, is_entry: bool) -> bool:
        """Another origin asks. A link to the first page may stand anywhere: without a cookie it opens nothing."""
        origins = headers.getlist("origin")
        if any(origin.lower() != f"{self._scheme}://{host.lower()}" for origin in origins):
            return True
        site = headers.get("sec-fetch-site", "none")
        if is_entry and headers.get("sec-fetch-mode", "navigate") == "navigate":
            return False
        return site not in ("same-origin", "none")

    def _entered(self, query: bytes) -> Response:
        """The address that was printed: its key becomes a cookie."""
        key = parse_qs(query.decode("latin-1")).get("token", [""])[0]
        access = self._keys.access(key)
        if access is Access.NOTHING:
            return refusal(HTTPStatus.FORBIDDEN, "this token is not valid; the dashboard may have new ones")
        session = secrets.token_urlsafe(32)
        self._sessions[session] = access
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        answer = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            self._cookie, session, httponly=True, samesite="strict", secure=self._scheme == "https", path="/"
        )
        return answer

    def _access(self, headers: Headers) -> tuple[Access, bool]:
        """The rights of a request, and whether a cookie says so."""
        kind, _, key = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._keys.access(key.strip()), False
        given = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        return self._sessions.get(given, Access.NOTHING), True


def _unsafe(headers: Headers, access: Access, *, is_cookie: bool) -> Response | None:
    if access is not Access.FULL:
        return refusal(HTTPStatus.FORBIDDEN, "this token may only read")
    if is_cookie and "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        return refusal(HTTPStatus.FORBIDDEN, "a browser has to name its origin")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body has to be JSON")
    length = length_of(headers)
    if length is None or length > MAX_BODY:
        return refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has to say its length, {MAX_BODY} bytes at most")
    return None
