"""Profiles: the cookies and the storage of a browser in which a person has logged in, in a file of that person's own.

Place in the flow: `gossamer profile` has :func:`logged_in` open a browser that is seen, and read what it stores until its last
window is closed. The stage `render` reads the file, and each tab begins with it (:func:`furnish`); requests have the same cookies
from the crawl's jar (:mod:`gossamer.fetcher.authentication`), which goes on with what servers set. The form of the file is that of
Playwright's `storage_state`.

Promises: a cookie goes to the hosts that it is for, by the rules of the browser and of the jar; storage is set for its origin
alone, in a world that the page's scripts do not reach, before they run.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from gossamer.browser.chromium import Chromium
from gossamer.browser.devtools import BrowserGone, CommandFailed, DevTools
from gossamer.engine.errors import SettingError
from gossamer.fetcher.authentication import LARGEST_COOKIES, fill, private
from gossamer.fetcher.cookies import CookieJar, fits
from gossamer.values.url import host_of

#: Seconds between two looks at the storage of a browser. A value that a page stores right before it is left is found by none.
LOOK: Final = 0.5

#: Seconds in which a page has to say what it has stored: one that shows a dialog does not.
_PATIENCE: Final = 5.0

#: Fields of a cookie that a browser takes as it has told them.
_FIELDS: Final = ("name", "value", "path", "secure", "httpOnly", "sameSite", "priority", "partitionKey")

_STORED: Final = (
    "({origin: self.origin, localStorage: Object.entries({...localStorage}).map(([name, value]) => ({name, value}))})"
)

#: Names that are there already stay: the page itself has set them.
_STORE: Final = """(stored => {
  for (const {origin, localStorage: items} of stored) {
    if (origin !== self.origin) { continue; }
    for (const {name, value} of items) {
      if (localStorage.getItem(name) === null) { localStorage.setItem(name, value); }
    }
  }
})(%s)"""


class Origin(msgspec.Struct, frozen=True, rename={"storage": "localStorage"}):
    """The local storage of one origin."""

    origin: str
    """As `https://example.org`."""
    storage: tuple[dict[str, str], ...] = ()
    """Each with a `name` and a `value`."""


class BrowserProfile(msgspec.Struct, frozen=True):
    """The cookies and the storage of a browser."""

    cookies: tuple[dict[str, Any], ...] = ()
    """With all fields, as the browser tells them."""
    origins: tuple[Origin, ...] = ()

    def left_out(self, fields: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """The fields of a request without cookies of the profile: the crawl's jar has these, perhaps with newer values."""
        known = {f"{one['name']}={one['value']}" for one in self.cookies}
        return tuple(
            (name, "; ".join(pair for pair in value.split("; ") if pair not in known) if name == "cookie" else value)
            for name, value in fields
        )


#: The profile of a visitor without any.
NOBODY: Final = BrowserProfile()


def read_profile(path: Path) -> BrowserProfile:
    """A profile. Raises SettingError: the file cannot be read, others can read it, or it is none."""
    try:
        found = msgspec.json.decode(private(path, LARGEST_COOKIES), type=BrowserProfile)
    except ValueError as error:
        raise SettingError(f"{path} is no profile; `gossamer profile URL {path}` makes one: {error}") from None
    fill(CookieJar(), path, 0.0)
    return found


async def furnish(devtools: DevTools, context: str, session: str, profile: BrowserProfile, url: str) -> None:
    """Put a profile into a tab, before its first page.

    Args:
        devtools: its browser.
        context: the context of the tab.
        session: the session of the tab.
        profile: what it begins with.
        url: a page of the host whose pages it shows.

    Raises:
        BrowserGone: the browser has ended.
    """
    host = host_of(url)
    stored = [one for one in profile.origins if host_of(f"{one.origin}/") == host]
    if stored:
        source = _STORE % msgspec.json.encode(stored).decode()
        script = {"source": source, "worldName": "gossamer"}
        await devtools.call("Page.addScriptToEvaluateOnNewDocument", script, session)
    calls = []
    for cookie in profile.cookies:
        given: dict[str, Any] = {name: cookie[name] for name in _FIELDS if name in cookie}
        domain, end = str(cookie["domain"]), cookie.get("expires") or 0
        if domain.startswith("."):  # one with a domain is for all of its hosts, one with a URL for that host alone
            given["domain"] = domain
        else:
            given["url"] = f"{'https' if cookie.get('secure') else 'http'}://{domain}/"
        given |= {"expires": end} if end > 0 else {}
        # Each by itself: a browser refuses all of them for one that it does not take.
        calls.append(devtools.call("Storage.setCookies", {"cookies": [given], "browserContextId": context}))
    for refused in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(refused, BrowserGone):
            raise refused


async def logged_in(program: str, url: str) -> BrowserProfile:
    """Show a page to a person, and return what the browser has stored when its last window is closed. Raises CommandFailed: the
    browser does not start."""
    browser = await Chromium.start(program, shown=url)
    call = browser.devtools.call
    sessions: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    cookies: list[dict[str, Any]] = []
    is_open, pages = False, list[str]()
    try:
        while pages or not is_open:
            is_open = is_open or bool(pages)
            for page in pages:
                with contextlib.suppress(CommandFailed, ValueError):
                    if page not in sessions:
                        attached = await call("Target.attachToTarget", {"targetId": page, "flatten": True})
                        sessions[page] = str(attached["sessionId"])
                    asked = {"expression": _STORED, "returnByValue": True}
                    found = await call("Runtime.evaluate", asked, sessions[page], patience=_PATIENCE)
                    one = msgspec.convert(found["result"].get("value"), Origin)
                    origins[one.origin] = one
            await asyncio.sleep(LOOK)
            targets = (await call("Target.getTargets"))["targetInfos"]
            pages = [one["targetId"] for one in targets if one["type"] == "page"]
            cookies = (await call("Storage.getCookies"))["cookies"]
    except BrowserGone:
        pass  # it was ended whole: the last look counts
    finally:
        await browser.stop()
    return BrowserProfile(
        tuple(one for one in cookies if fits(one["name"], one["value"])),
        tuple(one for one in origins.values() if one.storage and one.origin.startswith("http")),
    )
