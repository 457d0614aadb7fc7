"""One page in a tab: all that it asks for is given or refused here, until it has nothing more to do; then its markup is read.

Place in the flow: :mod:`gossamer.browser.tabs` lends a :class:`Tab` to a page. The tab never uses a network: each request of the
page is a *want*, which the caller answers. The clock of the page stands still while it waits for an answer (virtual time of the
protocol's domain `Emulation`), so that a page does not see how slow a polite crawl is, and its timers cost nothing.

Promises:
    1. A page ends: at its own rest, at a budget, or by being given up. What can be read of it is read in any case.
    2. Its scripts have no say in how it is read: that is done from a world of its own, which they do not reach.
    3. Nothing but http and https is asked for; popups, service workers, downloads, dialogs and permissions are refused and counted.
"""

import asyncio
import base64
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final

import msgspec

from gossamer.browser.acting import act
from gossamer.browser.devtools import BrowserGone, CommandFailed, DevTools
from gossamer.browser.profiles import NOBODY, BrowserProfile, furnish
from gossamer.fetcher.authentication import NOT_KEPT
from gossamer.values.body import RenderedHow
from gossamer.values.request_identity import Action

#: Milliseconds of the page's own time: what a page shows later than that, a person would not wait for.
PAGE_TIME: Final = 10_000

#: The most that one page may take: wants, their bytes, navigations of its own, frames, and bytes of its markup.
MOST_WANTS, MOST_BYTES, MOST_NAVIGATIONS, MOST_FRAMES, MOST_MARKUP = 500, 64 << 20, 5, 50, 4 << 20

#: Seconds without a want under way after which a page that works on is read as it is, and seconds that it may take in all: a polite
#: crawl may take a minute for each want, which the page does not see.
BUSY, IN_ALL = 20.0, 3_600.0

#: Seconds in which markup or a picture has to be there.
CAPTURE = 3.0

#: Kinds of wants that are never asked for: reports on readers, streams without end, and requests in advance.
REFUSED_KINDS = frozenset({"ping", "cspviolationreport", "eventsource", "websocket", "prefetch", "preflight", "media"})

#: Errors of the protocol by which a want is refused, or fails; and by which a page stays where it is, for the browser would show a
#: page of its own, with the error, in the place of a document that is not to be had.
_REFUSED, _FAILED, _STAYS = "BlockedByClient", "Failed", "Aborted"

#: Reads the markup in an isolated world, with open shadow roots as templates. The functions are those of the browser, whatever the
#: page has made of them.
_MARKUP = """(most => {
  const roots = [];
  const look = node => {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_ELEMENT);
    for (let one = walker.nextNode(); one; one = walker.nextNode()) {
      if (one.shadowRoot) { roots.push(one.shadowRoot); look(one.shadowRoot); }
    }
  };
  look(document);
  const root = document.documentElement;
  if (!root) { return ['', document.URL, false]; }
  const open = root.cloneNode(false).outerHTML.replace(/<\\/[^>]*>$/, '');
  const inner = root.getHTML({serializableShadowRoots: true, shadowRoots: roots});
  const text = (document.doctype ? '<!DOCTYPE ' + document.doctype.name + '>' : '') + open + inner + '</html>';
  return [text.slice(0, most), document.URL, text.length > most];
})(%d)"""

#: Random numbers that repeat, so that the addresses that a page makes of them are there when it is shown again; and there is a
#: network, for every request is answered, though the browser itself sees none.
_SETTING = """(() => {
  Object.defineProperty(Navigator.prototype, 'onLine', {get: () => true, configurable: true});
  let state = 0x9E3779B9;
  Math.random = () => {
    state = (state + 0x6D2B79F5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
})()"""


class Want(msgspec.Struct, frozen=True):
    """A request that a page makes while it is rendered."""

    url: str
    kind: str
    """`document`, `script`, `stylesheet`, `xhr`, `fetch`, `image`, `font`, ...: the protocol's resource types in lower case."""
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class WantedAnswer(msgspec.Struct, frozen=True):
    """The answer to a want: the body without its content coding."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class WantRefused(Exception):
    """The crawl does not ask for this. The message is the rule, as `robots_denied`."""


Ask = Callable[[Want], Awaitable[WantedAnswer]]
"""Answers a want. Raises WantRefused."""


class FetchedPage(msgspec.Struct, frozen=True):
    """A page to render: the answer that the crawl has."""

    url: str
    given: WantedAnswer
    at: float
    """When it was fetched, in seconds since the epoch: the clock of a new tab begins there."""
    picture: bool = False
    """Make a picture of it, too."""
    actions: tuple[Action, ...] = ()
    """Actions on the page when it has come to rest, before it is read."""


class RenderedPage(msgspec.Struct, frozen=True):
    """A page as a reader with a browser has it."""

    how: RenderedHow
    markup: str = ""
    url: str = ""
    """Its address at the end: scripts may have changed it."""
    picture: bytes = b""
    """PNG, where one was asked for."""
    counts: dict[str, int] = {}
    """Wants by `asked` and `refused:RULE`, and everything else that was refused."""


class Tab:
    """One tab of a browser, used for one page after another of a host."""

    def __init__(self, devtools: DevTools, profile: BrowserProfile = NOBODY) -> None:
        self.devtools, self.profile = devtools, profile
        self._context = self.target = self.session = ""
        self.pages = 0
        """Pages that were rendered here."""

    async def open(self, url: str) -> None:
        """Make the tab, in a context that shares nothing with others, for pages of the host of this URL. Raises CommandFailed:
        the browser does not."""
        call = self.devtools.call
        made = await call("Target.createBrowserContext", {"disposeOnDetach": True})
        self._context = str(made["browserContextId"])
        refuse = {"behavior": "deny", "browserContextId": self._context, "eventsEnabled": True}
        await call("Browser.setDownloadBehavior", refuse)
        target = {"url": "about:blank", "browserContextId": self._context}
        self.target = str((await call("Target.createTarget", target))["targetId"])
        attached = await call("Target.attachToTarget", {"targetId": self.target, "flatten": True})
        self.session = str(attached["sessionId"])
        await call("Page.addScriptToEvaluateOnNewDocument", {"source": _SETTING}, self.session)
        await furnish(self.devtools, self._context, self.session, self.profile, url)

    async def close(self) -> None:
        """Forget the tab and what its host has stored. Raises CommandFailed: it does not end; only the end of the browser
        helps."""
        await self.devtools.call("Target.disposeBrowserContext", {"browserContextId": self._context}, patience=CAPTURE)

    async def render(self, page: FetchedPage, ask: Ask, busy: float = BUSY) -> RenderedPage:
        """Show a page until it rests, and read it.

        Args:
            page: the page.
            ask: answers its requests.
            busy: seconds without one under way after which a page that works on is read as it is.

        Raises:
            BrowserGone: the browser has ended meanwhile.
        """
        self.pages += 1
        rendering = _Rendering(self, page, ask, busy)
        try:
            return await rendering.run()
        finally:
            rendering.end()


class _Rendering:
    """One page on its way."""

    def __init__(self, tab: Tab, page: FetchedPage, ask: Ask, busy: float) -> None:
        self._devtools, self._target, self._main, self._profile = tab.devtools, tab.target, tab.session, tab.profile
        self._page, self._ask, self._busy = page, ask, busy
        self._sessions = {tab.session}
        self._answering: set[asyncio.Task[None]] = set()
        self._counts = Counter[str]()
        self._bytes = 0
        self._navigations = 0
        self._is_over = asyncio.Event()
        """The page rests, or nothing more is given to it."""
        self._how: RenderedHow = "done"
        self._quiet_since: float | None = None
        """Since when no want is under way; None while one is."""

    async def run(self) -> RenderedPage:
        """Show the page until it rests, and read it."""
        try:
            self._attach(self._main)
            clock = {"policy": "pause", "initialVirtualTime": self._page.at}
            await self._devtools.call("Emulation.setVirtualTimePolicy", clock, self._main)
            self._devtools.post("Page.navigate", {"url": self._page.url}, self._main)
            await self._until_over()
            for action in self._page.actions:
                if self._how != "done" or not await act(action, self._acted, self._go_on, self._counts):
                    break
            if self._devtools.gone.is_set():
                raise BrowserGone("the browser has ended")  # perhaps for the sake of another page
            return await self._read()
        except BrowserGone:
            raise
        except CommandFailed:
            return RenderedPage("hung" if self._how in ("done", "limited") else self._how, counts=dict(self._counts))

    def end(self) -> None:
        """Answer nothing more, and let the tab rest."""
        for task in self._answering:
            task.cancel()
        for session in self._sessions:
            self._devtools.listen(session, None)
        self._devtools.post("Emulation.setVirtualTimePolicy", {"policy": "pause"}, self._main)
        self._devtools.post("Page.navigate", {"url": "about:blank"}, self._main)

    # -- the course of a page

    async def _until_over(self) -> None:
        """Wait until the page rests, a budget is spent, or it works on for long without asking for anything."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + IN_ALL
        self._quiet_since = loop.time()
        while not self._is_over.is_set():
            if (wait := min(ends, self._busy_until()) - loop.time()) <= 0.0:
                return self._limit("time")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_over.wait(), min(wait, 1.0))
        return None

    def _busy_until(self) -> float:
        """When a page that asks for nothing has had its time."""
        return inf if self._quiet_since is None else self._quiet_since + self._busy

    def _limit(self, what: str) -> None:
        """Give the page nothing more; it is read as it is."""
        if self._how == "done":
            self._how = "limited"
            self._counts[f"limit:{what}"] += 1
            for session in self._sessions:
                # The browser refuses by itself from now on: 10,000 refusals of ours take seconds.
                self._devtools.post("Network.setBlockedURLs", {"urls": ["*"]}, session)
            self._devtools.post("Page.stopLoading", {}, self._main)
        self._is_over.set()

    async def _go_on(self, milliseconds: int) -> bool:
        """Let the page have more of its own time; whether it may have more after that."""
        self._is_over.clear()
        self._quiet_since = None if self._answering else asyncio.get_running_loop().time()
        budget = {"policy": "pauseIfNetworkFetchesPending", "budget": milliseconds}
        self._devtools.post("Emulation.setVirtualTimePolicy", {**budget, **_STARVED}, self._main)
        await self._until_over()
        return self._how == "done" and not self._devtools.gone.is_set()

    async def _acted(self, expression: str) -> Any:
        """The value of an expression that may have the page ask for something at once."""
        self._is_over.clear()
        return await self._evaluated(expression)

    async def _evaluated(self, expression: str) -> Any:
        """The value of an expression in a world of its own; None where it raises."""
        call = self._devtools.call
        world = {"frameId": self._target, "worldName": "gossamer"}
        made = await call("Page.createIsolatedWorld", world, self._main, patience=CAPTURE)
        asked = {
            "expression": expression,
            "contextId": made["executionContextId"],
            "returnByValue": True,
            "timeout": 1_000 * CAPTURE,
        }
        found = await call("Runtime.evaluate", asked, self._main, patience=2 * CAPTURE)
        return found.get("result", {}).get("value")

    async def _read(self) -> RenderedPage:
        if self._how not in ("done", "limited"):
            return RenderedPage(self._how, counts=dict(self._counts))
        value = await self._evaluated(_MARKUP % MOST_MARKUP)
        if not isinstance(value, list):
            return RenderedPage("hung", counts=dict(self._counts))
        markup, url, is_cut = value
        if is_cut:
            self._how = "limited"
            self._counts["limit:markup"] += 1
        picture = await self._picture() if self._page.picture else b""
        return RenderedPage(self._how, str(markup), str(url), picture, dict(self._counts))

    async def _picture(self) -> bytes:
        """A picture of the page; nothing is drawn while time stands still, so the clock runs for it."""
        call = self._devtools.call
        try:
            await call("Emulation.setVirtualTimePolicy", {"policy": "advance"}, self._main, patience=CAPTURE)
            wanted = {"format": "png", "captureBeyondViewport": False}
            found = await call("Page.captureScreenshot", wanted, self._main, patience=2 * CAPTURE)
            return base64.b64decode(str(found["data"]))
        except BrowserGone:
            raise
        except CommandFailed:
            self._counts["no_picture"] += 1
            return b""

    # -- what the browser tells

    def _attach(self, session: str) -> None:
        """Listen to the page, or to a frame or worker of it; every request of it comes here first."""
        self._sessions.add(session)
        self._devtools.listen(session, lambda method, params: self._told(session, method, params))
        for method, params in (
            ("Page.enable", {}),
            ("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}),
            ("Network.setBlockedURLs", {"urls": []}),
            ("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}),
            ("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}),
        ):
            self._devtools.post(method, params, session)

    def _told(self, session: str, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Fetch.requestPaused":
                task = asyncio.get_running_loop().create_task(self._answer(session, params))
                self._answering.add(task)
                self._quiet_since = None
                task.add_done_callback(self._answered)
            case "Page.frameNavigated" if session == self._main and not params["frame"].get("parentId"):
                if params["frame"]["url"] != "about:blank":
                    budget = {"policy": "pauseIfNetworkFetchesPending", "budget": PAGE_TIME}
                    self._devtools.post("Emulation.setVirtualTimePolicy", {**budget, **_STARVED}, session)
            case "Page.frameAttached":
                self._counts["frames"] += 1
                if self._counts["frames"] > MOST_FRAMES:
                    self._limit("frames")
            case "Emulation.virtualTimeBudgetExpired":
                self._is_over.set()
            case "Inspector.targetCrashed" | "Inspector.detached" if session == self._main:
                self._how = "crashed"
                self._is_over.set()
            case "Page.javascriptDialogOpening":
                self._counts["dialogs"] += 1
                self._devtools.post("Page.handleJavaScriptDialog", {"accept": False}, session)
            case "Page.downloadWillBegin":
                self._counts["downloads"] += 1
            case "Network.webSocketCreated" | "Network.webTransportCreated":
                self._counts["sockets"] += 1
            case "Target.attachedToTarget":
                self._met(session, params)
            case _:
                pass

    def _met(self, session: str, params: dict[str, Any]) -> None:
        """A frame of another site or a worker has begun: it goes on once its requests come here. Pages and service workers end."""
        kind, new, target = params["targetInfo"]["type"], params["sessionId"], params["targetInfo"]["targetId"]
        if kind in ("iframe", "worker"):
            self._attach(new)
            self._devtools.post("Runtime.runIfWaitingForDebugger", {}, new)
            return
        self._counts[kind] += 1
        self._devtools.post("Runtime.runIfWaitingForDebugger", {}, new)
        self._devtools.post("Target.closeTarget", {"targetId": target}, session)

    # -- wants

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        if not self._answering:
            self._quiet_since = asyncio.get_running_loop().time()

    async def _answer(self, session: str, params: dict[str, Any]) -> None:
        """Give a want its answer, or refuse it."""
        paused, number = params["request"], params["requestId"]
        kind = str(params.get("resourceType", "other")).lower()
        is_page = kind == "document" and params.get("frameId") == self._target
        why, reason = "failed", _FAILED
        try:
            given = await self._given(paused, kind, is_page=is_page)
        except WantRefused as refusal:
            given, why, reason = None, f"refused:{refusal}", _REFUSED
        if given is None:
            self._counts[why] += 1
            failed = {"requestId": number, "errorReason": _STAYS if is_page else reason}
            self._devtools.post("Fetch.failRequest", failed, session)
            return
        kept = ((name, value) for name, value in given.headers if name not in _FRAMING and not value.endswith(NOT_KEPT))
        fields = [{"name": name, "value": value} for name, value in kept]
        answer = {"requestId": number, "responseCode": given.status, "responseHeaders": fields}
        answer["body"] = base64.b64encode(given.body).decode()
        self._devtools.post("Fetch.fulfillRequest", answer, session)

    async def _given(self, paused: dict[str, Any], kind: str, *, is_page: bool) -> WantedAnswer | None:
        """The answer to a want; None where the server gave none. Raises WantRefused."""
        url = str(paused["url"])
        if is_page:
            self._navigations += 1
            if self._navigations == 1:
                return self._page.given
            if self._navigations > MOST_NAVIGATIONS:
                self._limit("navigations")
        if kind in REFUSED_KINDS:
            raise WantRefused(kind)
        if not url.startswith(("http://", "https://")):
            raise WantRefused("scheme")
        self._counts["asked"] += 1
        if self._counts["asked"] > MOST_WANTS:
            self._limit("wants")
        if self._is_over.is_set():
            raise WantRefused("late")
        headers = self._profile.left_out((str(name).lower(), str(value)) for name, value in paused["headers"].items())
        body = str(paused.get("postData", "")).encode("utf-8", "surrogatepass")
        given = await self._ask(Want(url, kind, str(paused["method"]), headers, body))
        self._bytes += len(given.body)
        if self._bytes > MOST_BYTES:
            self._limit("bytes")
        return given if given.status else None


#: Tasks that a page may do in one moment of its own time before the clock goes on all the same.
_STARVED = {"maxVirtualTimeTaskStarvationCount": 1_000}

#: Fields that describe how an answer came, and not the body as it is given.
_FRAMING = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})
