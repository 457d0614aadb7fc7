"""Requests that are no plain GET: what they send, what they are known by (design question 25), and what a browser does on the page.

A plain GET is known by its URL alone, everywhere: in seen sets, queues and flights. Any other request is known by its URL and
a *mark* of its method, the digest of its body and a key of the user's own. A canonical URL has no line break, so no page can
link to a URL that looks like the identity of another request.

A spider gives actions with a request (`gossamer.Request(url, actions=[...])`), or an option with every page that is rendered. They
wait in the ledger with the request, stand in the row of the page, and :mod:`gossamer.browser.acting` does them one after the other
when the page has come to rest: scroll, load more, accept cookies, click, fill in, wait.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, Literal

import msgspec

from gossamer.values.errors import UsageError
from gossamer.values.patterns import lazy_pattern

#: Methods that change nothing on the server (RFC 9110, 9.2.1): they may be sent again after a kill.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

#: Bytes of a body, and of the data that a user's code gives itself for later: both wait in the ledger.
MAX_BODY, MAX_DATA = 1 << 20, 64 << 10

#: Characters of a label or key; fields of a header, and characters of one.
MAX_NAME, MAX_FIELDS, MAX_FIELD = 256, 64, 8_192

#: Fields that prove who asks: they go to the site that they were meant for, and to no other; the archive has none of them.
CREDENTIAL_FIELDS = frozenset(("authorization", "cookie", "proxy-authorization"))

#: Names of fields, and values, that look as if they proved who asks: a value taken for a secret goes to fewer hosts, and no worse.
_SECRET_NAME = lazy_pattern(
    r"token|secret|(?:api|access|private)-?key|passw(?:or)?d|pass(?:phrase|code)|[cx]srf|credential|cookie|signature"
    r"|authori[sz]|authentic|session|jwt|bearer|(?:^|[-_])(?:auth|key|sid|sig|otp|pwd)(?:$|[-_])",
    re.IGNORECASE,
)
#: A scheme of authentication before a value, a JSON Web Token (RFC 7519), or the mark by which a large service's tokens begin.
_SECRET_VALUE = lazy_pattern(
    r"(?i:(?:basic|bearer|digest|negotiate|ntlm|oauth|hmac|aws4-hmac-sha256|token|apikey) +\S)"
    r"|eyJ[\w-]{8,}\.[\w-]+\.|(?:gh[opsru]_|github_pat_|glpat-|xox[a-z]-|sk-|sk_live_|AKIA|AIza|ya29\.)[\w-]{8}",
    re.ASCII,
)

#: Fields that frame a message or identify who sends it: a setting of another name, or not a person's to set.
_RESERVED = "host user-agent accept-encoding connection content-length transfer-encoding te upgrade expect trailer"
RESERVED_FIELDS = frozenset(_RESERVED.split())

#: Fields that describe a body: a redirect that drops it drops them.
_BODY_FIELDS = frozenset(("content-type", "content-encoding", "content-language", "content-location"))

#: Levels of its host's queues that a request may go before others, or behind them.
MOST_PRIORITY = 255

#: Redirects that ask for the same request at another URL, body and all (RFC 9110, 15.4.8 and 15.4.9).
_SAME_AGAIN = frozenset((307, 308))

#: `follow` goes where an answer leads; `keep` takes the redirect for the answer.
Redirects = Literal["follow", "keep"]

#: Bytes of a body's digest: bodies may be made of what strangers wrote, so it must resist people.
_DIGEST_BYTES = 16

_METHOD = lazy_pattern(r"[A-Z][A-Z-]{0,31}")
_FIELD_NAME = lazy_pattern(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FIELD_VALUE = lazy_pattern(r"[\x20-\x7e\t]*")

#: The text in a mark before the digest that tells cookies apart: where redirects led back to a URL, its answer is that of the URL.
WITH_COOKIES = "  cookies "

#: The character between the URL and the mark.
_BREAK = "\n"


#: Actions of one request, repetitions of one action, seconds of the page's own time, and characters of a selector or text: a page
#: with 100 actions of a second takes as long as a person would look at it.
MOST_ACTIONS: Final = 100
MOST_TIMES: Final = 100
MOST_SECONDS: Final = 60.0
MOST_TEXT: Final = 8_192

Deed = Literal["scroll", "more", "cookies", "click", "fill", "wait"]
"""The kinds of actions."""


class Action(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action of the browser on a page. Make one by `Action.scroll()` and the other functions of this class."""

    do: Deed
    at: str = ""
    """A CSS selector of the element; the first one that can be seen is taken."""
    text: str = ""
    """The text that is filled in."""
    times: int = 1
    """How often it is done at the most."""
    seconds: float = 0.0
    """How long the page gets for it, by its own clock."""

    @classmethod
    def scroll(cls, times: int = 10) -> "Action":
        """Scroll to the end of the page, so often at the most, as long as it grows."""
        return cls("scroll", times=times)

    @classmethod
    def more(cls, selector: str = "", times: int = 20) -> "Action":
        """Click the button that loads more, so often at the most, as long as it is there. Without a selector, it is known by
        its words, as `Load more`."""
        return cls("more", selector, times=times)

    @classmethod
    def cookies(cls) -> "Action":
        """Accept cookies: click the button of the consent managers that many sites use, or one with such words in a notice."""
        return cls("cookies")

    @classmethod
    def click(cls, selector: str) -> "Action":
        return cls("click", selector)

    @classmethod
    def fill(cls, selector: str, text: str) -> "Action":
        """Fill a text into a field, or choose an option by its value. Fields for passwords are left alone: requests wait in the
        ledger, where no password may be."""
        return cls("fill", selector, text)

    @classmethod
    def wait(cls, selector: str = "", seconds: float = 10.0) -> "Action":
        """Wait until there is such an element, for so many seconds at the most; without a selector, for so many seconds. They
        are seconds of the page's own clock, and cost next to nothing."""
        return cls("wait", selector, seconds=seconds)


def _checked(actions: Iterable[Action]) -> tuple[Action, ...]:
    """The actions of a request. Raises UsageError: one cannot be done, or there are too many."""
    made = tuple(actions)
    if len(made) > MOST_ACTIONS:
        raise UsageError(f"a request has {len(made)} actions; {MOST_ACTIONS} can be done on a page")
    for number, one in enumerate(made, 1):
        given: object = one
        if not isinstance(given, Action):
            raise UsageError(
                f"action {number} of a request is {one!r:.80}; write gossamer.Action.click(SELECTOR), for instance"
            )
        if one.do in ("click", "fill") and not one.at:
            raise UsageError(f"action {number} of a request, {one.do!r}, needs a CSS selector")
        if not 1 <= one.times <= MOST_TIMES or not 0 <= one.seconds <= MOST_SECONDS:
            raise UsageError(
                f"action {number} of a request, {one.do!r}: from 1 to {MOST_TIMES} times, and {MOST_SECONDS:g} s at the most"
            )
        if len(one.at) + len(one.text) > MOST_TEXT:
            raise UsageError(
                f"action {number} of a request, {one.do!r}: selector and text have {MOST_TEXT:,} characters at the most"
            )
    return made


class Way(msgspec.Struct, frozen=True, gc=False):
    """How redirects have led to a request, where cookies are kept: a server may lead back once it has set one."""

    asked: tuple[tuple[str, str], ...]
    """The URLs asked for on the way, each with what tells the cookies that it was asked with from others."""
    cookies: str
    """The same of the cookies that the request is about to have."""


class Requested(msgspec.Struct, frozen=True, gc=False):
    """Everything that a task asks for beside its URL. Made by :func:`requested`."""

    mark: str = ""
    """Its identity beside the URL; empty where the URL alone says it."""
    method: str = "GET"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    """Fields beside those that every request has."""
    label: str = ""
    """The name of the request: the user's code finds its handler by it."""
    data: bytes = b""
    """The value that the user's code gives itself for when the answer comes."""
    is_safe: bool = False
    """It may be sent again, though its fate before is unknown."""
    priority: int = 0
    """So many levels sooner than others of its depth; later where it is negative."""
    redirects: Redirects = "follow"
    session: str = ""
    """The session that asks, where a spider keeps sessions; empty for the one whose turn it is."""
    way: Way | None = None
    """How redirects have led here; None where no cookies are kept."""
    render: bool | None = None
    """Whether a browser renders the page; None leaves that to the crawl."""
    actions: tuple[Action, ...] = ()
    """The actions of the browser on it."""
    was_begun: bool = False
    """An earlier process may have sent it, and ended before it knew what became of it. Set by the queues alone."""

    @property
    def is_plain(self) -> bool:
        """Nothing but its URL is sent: any module that fetches URLs can do it."""
        return not self.mark and not self.headers


def requested(
    method: str = "GET",
    body: bytes = b"",
    headers: tuple[tuple[str, str], ...] = (),
    label: str = "",
    data: bytes = b"",
    key: str = "",
    is_safe: bool | None = None,
    priority: int = 0,
    redirects: Redirects = "follow",
    session: str = "",
    render: bool | None = None,
    actions: tuple[Action, ...] = (),
) -> Requested:
    """A request as it may wait in the ledger: its parts are those of :class:`Requested`. `key` tells requests apart that are
    otherwise the same, as those of two sessions; `is_safe` is by default as the method says. Raises UsageError: a part is larger
    than may be kept, or cannot be sent."""
    if not _METHOD.fullmatch(method):
        raise UsageError(f"a request cannot have the method {method[:32]!r}; write it in capitals, as POST")
    for what, text, most in (
        ("body", body, MAX_BODY),
        ("data", data, MAX_DATA),
        ("label", label, MAX_NAME),
        ("key", key, MAX_NAME),
        ("session", session, MAX_NAME),
    ):
        if len(text) > most:
            raise UsageError(f"the {what} of a request has {len(text):,} bytes; {most:,} can be kept")
    if not all(part.isprintable() for part in (label, key, session)):
        raise UsageError("label, key and session of a request are one line of printable characters each")
    if len(headers) > MAX_FIELDS:
        raise UsageError(f"a request has {len(headers)} header fields of its own; {MAX_FIELDS} can be kept")
    for name, value in headers:
        if not _FIELD_NAME.fullmatch(name) or not _FIELD_VALUE.fullmatch(value) or len(name) + len(value) > MAX_FIELD:
            raise UsageError(f"the header field {name[:64]!r} of a request cannot be sent")
        if name.lower() in RESERVED_FIELDS:
            raise UsageError(f"the header field {name!r} of a request is not yours to set")
    if abs(priority) > MOST_PRIORITY:
        raise UsageError(f"the priority of a request is from -{MOST_PRIORITY} to {MOST_PRIORITY}, not {priority}")
    safe = method in SAFE_METHODS if is_safe is None else is_safe
    mark = _mark(method, body, key)
    return Requested(
        mark,
        method,
        body,
        headers,
        label,
        data,
        safe,
        priority,
        redirects,
        session,
        render=render,
        actions=_checked(actions),
    )


def _mark(method: str, body: bytes, key: str) -> str:
    if method == "GET" and not body and not key:
        return ""
    digest = blake2b(body, digest_size=_DIGEST_BYTES).hexdigest() if body else "-"
    return f"{method} {digest} {key}".rstrip()


def redirected(request: Requested, status: int, *, is_same_site: bool) -> Requested:
    """The request for the place where an answer to `request` leads, a redirect with this status: label and data go along, a body
    only where the status says so, and what proves who asks only to the same scheme, host and port (`is_same_site`).

    What a redirect of a POST leads to is the answer to that POST: it is known by it too, so that two forms that lead to one
    page are two answers.
    """
    keeps_method = status in _SAME_AGAIN or request.method == "HEAD" or (status != 303 and request.method != "POST")
    method, body = (request.method, request.body) if keeps_method else ("GET", b"")
    dropped = _BODY_FIELDS if request.body and not body else frozenset()
    headers = tuple(
        field
        for field in request.headers
        if field[0].lower() not in dropped and (is_same_site or not is_secret(*field))
    )
    known_by = request.mark if request.way is None else request.mark.removesuffix(WITH_COOKIES + request.way.cookies)
    key = blake2b(known_by.encode(), digest_size=_DIGEST_BYTES).hexdigest() if known_by not in ("", "GET") else ""
    return msgspec.structs.replace(
        request,
        mark=_mark(method, body, key),
        method=method,
        body=body,
        headers=headers,
        is_safe=request.is_safe or method in SAFE_METHODS,
        was_begun=False,
    )


def led_back(request: Requested | None, url: str) -> Requested | None:
    """The request where redirects lead to `url`, perhaps back to it.

    A URL of the way that is asked for with other cookies is another request, and is known by them; with the same cookies it is what
    it was, and the seen set ends the loop.
    """
    way = None if request is None else request.way
    if request is None or way is None or (url, way.cookies) in way.asked or all(url != asked for asked, _ in way.asked):
        return request
    return msgspec.structs.replace(request, mark=f"{request.mark or request.method}{WITH_COOKIES}{way.cookies}")


def is_secret(name: str, value: str) -> bool:
    """Whether a header field looks as if it proved who asks: no archive has its value, and it goes to the hosts that it is for."""
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.match(value))


def identity_of(url: str, mark: str) -> str:
    """The identity of a request."""
    return f"{url}{_BREAK}{mark}" if mark else url
