"""The places at which pages are rendered: one browser, a bounded number of pages at once, and a tab for each host.

Place in the flow: the stage `render` asks for a page; nothing is started before the first one. A tab is kept for the next page of
its host, which costs a third of a new one, since scripts that it has compiled are there; no two hosts share one.

Promises:
    1. A page that cannot be ended is killed with the browser. The other pages of that browser are rendered again, and never know.
       One whose browser is lost again and again has a last try by itself.
    2. A browser that dies is started again. One that does not start any more is told of once, and pages go on without it.
    3. Memory is bounded: by the number of tabs, by the limits of the guard, and by a new browser after many pages. The old one
       ends with the last page that it shows.
"""

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable

from gossamer.browser.chromium import GUARD, Chromium
from gossamer.browser.devtools import BrowserGone, CommandFailed
from gossamer.browser.profiles import NOBODY, BrowserProfile
from gossamer.browser.rendering import BUSY, Ask, FetchedPage, RenderedPage, Tab

#: Pages after which a browser ends and a new one begins: it keeps some of what each page has left behind.
MOST_PAGES = 1_000

#: How often a page is begun in a browser that it shares and that is lost, perhaps to another page, before it gets one of its own.
MOST_BEGUN = 3

#: Seconds until a browser that did not start is tried again.
REST = 60.0


class _Unopened(Exception):
    """A browser opens no tab."""


class Tabs:
    """Renders pages, so many at once."""

    def __init__(
        self,
        program: str,
        most: int,
        report: Callable[[str], None] = lambda line: None,
        *,
        busy: float = BUSY,
        guard: str = GUARD,
        lifetime: int = MOST_PAGES,
        profile: BrowserProfile = NOBODY,
    ) -> None:
        """Start nothing yet.

        Args:
            program: path of the browser.
            most: pages at once; twice as many tabs are kept.
            report: is told, in one line, what a person should know.
            busy: seconds without a want under way after which a page that works on is read as it is.
            guard: path of the program that starts the browser.
            lifetime: pages after which a browser ends.
            profile: what each tab begins with.
        """
        self._program, self._guard, self._busy, self._lifetime = program, guard, busy, lifetime
        self._profile = profile
        self._free = asyncio.Semaphore(most)
        self._most_tabs = 2 * most
        self._report = report
        self._browser: Chromium | None = None
        self._starting, self._alone = asyncio.Lock(), asyncio.Lock()
        self._tabs: OrderedDict[Hashable, Tab] = OrderedDict()
        """Tabs that no page is in, the one that was used last at the end."""
        self._ended: Chromium | None = None
        """The last browser that was ended since a page in it did not end."""
        self._pages = 0
        """Pages of this browser."""
        self._showing = Counter[Chromium]()
        """How many pages each browser shows; one that is not this one ends with its last."""
        self._refused_until = 0.0
        self.started = 0
        """Browsers that were started."""

    async def render(self, owner: Hashable, page: FetchedPage, ask: Ask) -> RenderedPage:
        """Render a page when there is a place.

        Args:
            owner: its host, and whatever else parts those who share a tab.
            page: the page.
            ask: answers its requests.
        """
        async with self._free:
            begun = 0
            while begun < MOST_BEGUN:
                try:
                    if (shown := await self._render(owner, page, ask)) is not None:
                        return shown
                except (BrowserGone, _Unopened):
                    begun += 1
                except CommandFailed as error:
                    return self._refused(error)
            return await self._render_alone(page, ask)

    async def begin(self) -> None:
        """Start the browser before it is needed. Raises CommandFailed: it does not start."""
        await self._running()

    async def close(self) -> None:
        """End the browser, and those whose last pages are on their way."""
        async with self._starting:
            await self._end()
            for browser in list(self._showing):
                await browser.stop()

    async def _render(self, owner: Hashable, page: FetchedPage, ask: Ask) -> RenderedPage | None:
        """The page; None where the browser was ended for the sake of another page, which costs this one no try."""
        browser = await self._running()
        self._showing[browser] += 1
        try:
            return await self._render_in(browser, owner, page, ask)
        finally:
            self._showing[browser] -= 1
            if not self._showing[browser]:
                del self._showing[browser]
                if browser is not self._browser:
                    await browser.stop()

    async def _render_in(self, browser: Chromium, owner: Hashable, page: FetchedPage, ask: Ask) -> RenderedPage | None:
        tab = self._tabs.pop(owner, None)
        try:
            if tab is None:
                tab = Tab(browser.devtools, self._profile)
                try:
                    await tab.open(page.url)
                except BrowserGone:
                    raise
                except CommandFailed as error:  # it hangs, and may be ended for that
                    await self._give_up(browser, tab)
                    raise _Unopened from error
            self._pages += 1
            shown = await tab.render(page, ask, self._busy)
            if shown.how in ("hung", "crashed"):
                await self._give_up(browser, tab)
        except BrowserGone:
            if browser is self._ended:
                return None
            raise
        except asyncio.CancelledError:
            if tab is not None:
                with contextlib.suppress(CommandFailed):
                    await tab.close()
            raise
        if shown.how not in ("hung", "crashed") and browser is self._browser:
            self._tabs[owner] = tab
            while len(self._tabs) > self._most_tabs:
                with contextlib.suppress(BrowserGone):
                    await self._give_up(browser, self._tabs.popitem(last=False)[1])
        return shown

    async def _render_alone(self, page: FetchedPage, ask: Ask) -> RenderedPage:
        """The page in a browser of its own, which is lost to nothing but this page."""
        async with self._alone:
            try:
                browser = await Chromium.start(self._program, self._guard)
            except CommandFailed as error:
                return self._refused(error)
            tab = Tab(browser.devtools, self._profile)
            try:
                await tab.open(page.url)
                return await tab.render(page, ask, self._busy)
            except CommandFailed:
                return RenderedPage("crashed")
            finally:
                await browser.stop()

    async def _give_up(self, browser: Chromium, tab: Tab) -> None:
        """Close a tab; where it does not close, end the browser. Raises BrowserGone: that has ended, and took the page down."""
        try:
            await tab.close()
        except BrowserGone:
            raise
        except CommandFailed:
            async with self._starting:
                if browser is self._browser:
                    self._ended = browser
                    await self._end()

    async def _running(self) -> Chromium:
        """The browser, started where there is none. Raises CommandFailed: it does not start."""
        async with self._starting:
            browser = self._browser
            if browser is not None and browser.is_gone:
                await self._end()
            elif browser is not None and self._pages >= self._lifetime:
                self._tabs.clear()
                self._browser = None
                if browser not in self._showing:
                    await browser.stop()
            if self._browser is None:
                now = asyncio.get_running_loop().time()
                if now < self._refused_until:
                    raise CommandFailed("the browser did not start a moment ago")
                self._browser = await Chromium.start(self._program, self._guard)
                self._pages = 0
                if not self.started and self._browser.missing:
                    told = "it is kept from it by a dead proxy"
                    self._report(f"the browser cannot have a network of its own here ({self._browser.missing}); {told}")
                self.started += 1
            return self._browser

    def _refused(self, error: CommandFailed) -> RenderedPage:
        """There is no browser for this page; a person is told once in a while."""
        now = asyncio.get_running_loop().time()
        if now >= self._refused_until:
            self._refused_until = now + REST
            self._report(f"{error}; pages are kept as they came")
        return RenderedPage("no_browser")

    async def _end(self) -> None:
        self._tabs.clear()
        if self._browser is not None:
            await self._browser.stop()
            self._browser = None
