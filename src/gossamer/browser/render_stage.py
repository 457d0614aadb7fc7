"""The stage `render`: pages that need a browser get the document that a browser makes of them; all others pass by.

Place in the flow: between fetch and content-seen, so that everything behind it reads the rendered page as it would any other:
duplicates, links, text, traps, changes. Its input always accepts, for the answers that a page waits for pass here as well. A page
that is being rendered keeps its slot; the requests that it makes need none (:mod:`gossamer.frontier.dispatch`).

Promises:
    1. A page is never worse than without: where nothing can be read of the rendered page, the answer stands.
    2. When the crawl is asked to end, pages on their way go back to their queue, and are fetched and rendered in the next run.
"""

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Protocol

import msgspec

from gossamer.browser.chromium import program
from gossamer.browser.devtools import CommandFailed
from gossamer.browser.options import Actions, Choice, PagesAtOnce, ProfileFile, Program, Rules, Screenshot
from gossamer.browser.profiles import NOBODY, read_profile
from gossamer.browser.rendering import FetchedPage, RenderedPage, Want, WantedAnswer
from gossamer.browser.tabs import Tabs
from gossamer.browser.wants import PageAnswers
from gossamer.documents.charset import media_type_of
from gossamer.engine.component import AsynchronousFilter
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.expressions.compiling import Expression
from gossamer.expressions.syntax import ExpressionError
from gossamer.values.body import RENDERED_DIGEST, Rendered, sha1_base32
from gossamer.values.errors import UsageError
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import Action
from gossamer.values.task import Task
from gossamer.values.visit import Visit

#: A link, as pages mostly write it.
_HREF = re.compile(rb"<a\s[^>]{0,2000}?href\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)

#: How often an action of every page is done at the most, where a person has not said so.
MOST_REPEATED = 20


class RenderSheet(Sheet, frozen=True):
    pages: Annotated[
        Choice, setting("Render the pages that seem to need it (`auto`), or every HTML page (`always`).")
    ] = "auto"
    browser: Annotated[Program, setting(restart="a browser runs already")] = ""
    profile: Annotated[ProfileFile, setting(restart="tabs have begun with it")] = ""
    places: Annotated[PagesAtOnce, setting(restart="places are made at the start")] = 4
    rules: Rules = ()
    actions: Actions = ()
    screenshot: Screenshot = False


class RenderChooser(Protocol):
    """Says of pages that a browser is to render them: the handlers of a spider."""

    def renders(self, visit: Visit) -> bool:
        """Whether this page is rendered, whatever the rules of the crawl say."""


class Render(AsynchronousFilter[RenderSheet]):
    """Fills in `rendered`."""

    inbox: In[Visit]
    outbox: Out[Visit]
    wants: Out[Task]
    answers: Uses[PageAnswers]
    choosers: UsesMany[RenderChooser]

    optional = frozenset({"wants"})
    spills = frozenset({"inbox"})
    lasts = "pages are in its browser"

    def __init__(self, sheet: RenderSheet | None = None) -> None:
        super().__init__(sheet)
        self._ready: deque[Visit] = deque()
        self._unsent: deque[Task] = deque()
        self._rendering: dict[asyncio.Task[None], Visit] = {}
        self._tabs: Tabs | None = None
        self._is_missing = False
        """There is no browser on this machine."""
        self._has_all = False
        self._is_draining = False
        self.metrics.gauge("rendering", lambda: len(self._rendering))
        self.metrics.gauge("browsers_started", lambda: self._tabs.started if self._tabs else 0)

    def read_sheet(self) -> None:
        """Read the rules. Raises SettingError: one cannot be read."""
        self._rules: list[tuple[Choice, Expression]] = []
        for rule in self.sheet.rules:
            choice, colon, source = rule.partition(":")
            try:
                chosen = msgspec.convert(choice.strip(), Choice)
                self._rules.append((chosen, Expression(source if colon else "", "parse")))
            except (msgspec.ValidationError, ExpressionError) as error:
                raise SettingError(f"rule of rendering {rule!r}: write CHOICE: EXPRESSION; {error}") from None

    async def start(self) -> None:
        """Find the browser. It is started with the first page that needs it.

        Raises:
            UsageError: every page is to be rendered, and there is none, or none that starts.
            SettingError: the profile cannot be used.
        """
        profile = read_profile(Path(self.sheet.profile)) if self.sheet.profile else NOBODY
        try:
            self._tabs = Tabs(program(self.sheet.browser), self.sheet.places, self.report, profile=profile)
            if self.sheet.pages == "always":
                await self._tabs.begin()
        except CommandFailed as error:
            raise UsageError(str(error)) from None
        except UsageError as error:
            if self.sheet.pages == "always":
                raise
            self._is_missing = True
            self.report(f"{error}; pages that need it are kept as they came")

    async def stop(self) -> None:
        for task in list(self._rendering):
            task.cancel()
        await asyncio.gather(*self._rendering, return_exceptions=True)
        self.answers.give_up()
        if self._tabs is not None:
            await self._tabs.close()

    def drain(self) -> None:
        """Pages on their way go back to their queue."""
        self._is_draining = True
        for task in list(self._rendering):
            task.cancel()

    # -- inputs and outputs

    async def on_inbox_many(self, visits: Sequence[Visit]) -> None:
        """Pages that need a browser go to it; the others go on."""
        for visit in visits:
            if not self._is_wanted(visit):
                self._ready.append(visit)
            elif self._is_missing or self._is_draining:
                why = RenderedPage("no_browser" if self._is_missing else "interrupted")
                self._ready.append(_with(visit, why, 0.0))
            else:
                while "wants" not in self.outs and len(self._rendering) >= 2 * self.sheet.places:
                    await asyncio.wait(self._rendering, return_when=asyncio.FIRST_COMPLETED)  # an archive has no slots
                task = asyncio.get_running_loop().create_task(self._render(visit))
                self._rendering[task] = visit
                task.add_done_callback(self._done)
        self.signal("outbox")

    def finish(self) -> None:
        """This ends with the last page that is rendered."""
        self._has_all = True
        if not self._rendering:
            super().finish()

    def take_outbox(self, free: int) -> list[Visit]:
        """Visits that go on."""
        return [self._ready.popleft() for _ in range(min(free, len(self._ready)))]

    def take_wants(self, free: int) -> list[Task]:
        """Requests of pages."""
        return [self._unsent.popleft() for _ in range(min(free, len(self._unsent)))]

    def _done(self, task: "asyncio.Task[None]") -> None:
        visit = self._rendering.pop(task)
        if task.cancelled():
            self._ready.append(_with(visit, RenderedPage("interrupted"), 0.0))
        elif (error := task.exception()) is not None:
            self.metrics.count(f"broken:{type(error).__name__}")
            self._ready.append(_with(visit, RenderedPage("crashed"), 0.0))
        self.signal("outbox")
        if self._has_all:
            self.finish()

    # -- one page

    def _is_wanted(self, visit: Visit) -> bool:
        """Whether it is a whole page of the crawl, and needs a browser."""
        response = visit.response
        if response.outcome is not Outcome.OK or not response.body or response.barred or response.brought is not None:
            return False
        if visit.is_robots or visit.task.is_want:
            return False
        if (response.mime or media_type_of(response, visit.task.found_by)) not in HTML_TYPES:
            return False
        # Its request says whether it is rendered, or its handler, a rule, or the crawl.
        request, choice = visit.task.request, self.sheet.pages
        if request is not None and request.render is not None:
            choice = "always" if request.render else "never"
        elif any(one.renders(visit) for one in self.choosers.get("pages", ())):
            choice = "always"
        else:
            choice = next((choice for choice, one in self._rules if not one.judge(visit)), choice)
        if choice != "auto" or visit.rendered is not None:
            return choice == "always" or visit.rendered is not None
        self.answers.recall(visit.task.host)
        return self.answers.needs.decide(visit)

    async def _render(self, visit: Visit) -> None:
        assert self._tabs is not None
        began = self.clock.monotonic()
        task, response = visit.task, visit.response

        bound = self.answers.bound(visit)

        async def ask(want: Want) -> WantedAnswer:
            return await self.answers.answer(want, task, bound, self._send)

        session = "" if task.request is None else task.request.session
        given = WantedAnswer(response.status or 200, response.headers, response.content)
        general = tuple(Action(one, times=MOST_REPEATED) for one in self.sheet.actions)
        actions = general if task.request is None else task.request.actions or general
        page = FetchedPage(visit.url, given, response.started, self.sheet.screenshot, actions)
        shown = await self._tabs.render((task.host, session), page, ask)
        self.metrics.count(f"rendered:{shown.how}")
        if shown.markup:
            self.answers.recall(task.host)
            self.answers.needs.learn(visit, shown.markup.encode("utf-8", "replace"))
        self._ready.append(_with(visit, shown, self.clock.monotonic() - began))

    def _send(self, task: Task) -> None:
        """Have the crawl fetch what a page wants."""
        self._unsent.append(task)
        self.signal("wants")


def _with(visit: Visit, shown: RenderedPage, seconds: float) -> Visit:
    """The visit with the page as a browser shows it; a page that was rendered before stays so, if nothing can be read now."""
    if not shown.markup and visit.rendered is not None:
        return visit
    dom = shown.markup.encode("utf-8", "replace")
    digest = RENDERED_DIGEST + sha1_base32(dom) if dom else ""
    rendered = Rendered(shown.how, dom, digest, "", shown.picture, shown.counts, seconds)
    if dom:
        gained = {*_HREF.findall(dom)} - {*_HREF.findall(visit.response.content)}
        rendered = msgspec.structs.replace(rendered, gained=len(gained))
    return msgspec.structs.replace(visit, rendered=rendered, mime="text/html" if dom else visit.mime)
