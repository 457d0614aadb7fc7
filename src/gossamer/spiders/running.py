"""The provider that runs a spider's handlers: in the loop, in threads, or by naming what runs them in another process.

Place in the flow: the process stage asks it for each visit. Mistakes of handlers end here: an exception, a missed deadline
or a value that cannot be kept becomes a :class:`~gossamer.values.visit.Raised` in the visit, and costs nothing else.
"""

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.engine.ends import Uses
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.parsing.contract import (
    TOO_MANY_FINDINGS,
    Ask,
    Elsewhere,
    Entered,
    Grant,
    Handled,
    Rulings,
    SessionsStanding,
)
from gossamer.spiders.handlers import Gathering, HandlerPlan, HandlerTable, TooManyFinds
from gossamer.spiders.logins import Entrances, LogInTable
from gossamer.spiders.sessions import NO_SESSIONS, SessionPool
from gossamer.spiders.threads import Hanging, LoopWatch, Threads, TooManyHang
from gossamer.values.errors import ParseSkipped, UsageError
from gossamer.values.items import raised, shown_file
from gossamer.values.outcome import DOCUMENTS, Outcome
from gossamer.values.request import LoggedOut, Retry
from gossamer.values.request_identity import Requested
from gossamer.values.task import Disposition, Task
from gossamer.values.visit import Record, Response, Visit, answer_of, given_up, of_request

#: Outcomes that are no failure, and no document either.
_NEITHER = frozenset((Outcome.REDIRECT, Outcome.NOT_MODIFIED))


class SpiderSheet(Sheet, frozen=True):
    file: Annotated[
        str, setting("File from which the spider was loaded; messages name it when the crawl is resumed.", names="code")
    ] = ""
    threads: Annotated[
        int,
        setting(
            "Run at most this many blocking handlers at the same time.",
            unit="threads",
            restart="threads are at work",
            ge=1,
            le=256,
        ),
    ] = 16
    watch: Annotated[
        bool, setting("Report a handler that blocks the crawl for a second.", restart="the watch starts with the crawl")
    ] = True


class SpiderHandlers(Provider[SpiderSheet]):
    """Runs the handlers of one spider. Contracts: `PageHandlers`, `LogIns`, `SessionTurns` and `Beginnings` of
    `parsing.contract`. A spider makes a subclass with its own `table`, `logins`, `plan_of_sessions` and `asked`."""

    politeness: Uses[Rulings]
    table: HandlerTable
    logins = LogInTable()
    plan_of_sessions = NO_SESSIONS
    asked: Mapping[str, Sequence[Requested | None]] = {}
    """The requests of seeds, by their canonical URLs; a plain request of those that are not here."""

    keeps_state = True

    def __init__(self, sheet: SpiderSheet | None = None) -> None:
        super().__init__(sheet)
        self._threads: Threads | None = None
        self._watch: LoopWatch | None = None
        self._entrances = Entrances(self.logins, self._now)
        self.pool = SessionPool(self.plan_of_sessions, self._now)
        self.metrics.gauge("retired_sessions", lambda: self.pool.retired)
        self.metrics.gauge("hanging", lambda: len(self._threads.left_behind) if self._threads is not None else 0)

    async def start(self) -> None:
        """Begin to watch the loop."""
        self._threads = Threads(self.sheet.threads)
        if self.sheet.watch:
            self._watch = LoopWatch(self.table.codes(), self.report)
            self._watch.start()

    async def stop(self) -> None:
        """End the idle threads. Threads that hang end with the program."""
        if self._watch is not None:
            self._watch.stop()
        if self._threads is not None:
            self._threads.close()

    def _now(self) -> float:
        return self.clock.now()

    def beginnings(self, url: str) -> Sequence[Requested | None]:
        return self.asked.get(url, (None,))

    async def enter(self, url: str, ask: Ask, entered: Entered, grant: Grant, session: str = "") -> None:
        await self._entrances.enter(url, ask, entered, grant, session)

    # -- who asks

    def sessions_standing(self, most: int) -> SessionsStanding | None:
        pool = self.pool
        return SessionsStanding(pool.count, pool.retired, pool.most, pool.health(most)) if pool.count else None

    def session_for(self, task: Task) -> str:
        return self.pool.session_for(task)

    def answered(self, session: str, task: Task, response: Response) -> None:
        self.pool.answered(session, task, response)

    def take_retired(self) -> Sequence[str]:
        taken = self.pool.take_retired()
        for session in taken:
            self._entrances.forget(session)
        return taken

    def retired(self, visit: Visit) -> None:
        self.pool.retire(visit.response.session, visit.response.started)

    # -- whose page it is

    def wants(self, visit: Visit) -> bool:
        return self._is_refused(visit) or self._plan_of(visit) is not None

    def _is_refused(self, visit: Visit) -> bool:
        return bool(visit.response.session) and self.pool.is_refused(visit.task, visit.response)

    def elsewhere(self, visit: Visit) -> Elsewhere | None:
        plan = self._plan_of(visit)
        if plan is None or plan.run != "process":
            return None
        sheet = {
            "file": (inspect.getsourcefile(inspect.unwrap(plan.function)) or ""),
            "handler": plan.name,
            "labels": sorted(self.table.labels),
            "keeps_sessions": bool(self.pool.count),
        }
        return Elsewhere(plan.who, plan.place, "gossamer.spiders.loading", "FileHandler", sheet, plan.deadline)

    def _plan_of(self, visit: Visit) -> HandlerPlan | None:
        request, response = visit.task.request, visit.response
        label = "" if request is None else request.label
        outcome = response.outcome
        if response.barred or visit.is_robots:
            return None
        is_kept = outcome is Outcome.REDIRECT and request is not None and request.redirects == "keep"
        if outcome in DOCUMENTS or is_kept:
            return self.table.of_page(label, visit.url, visit.media_type)
        if outcome in _NEITHER:
            return None
        is_final = outcome is Outcome.GONE_AFTER_RETRIES or self._ruling(visit) in (Disposition.DONE, Disposition.GONE)
        return self.table.of_failure(label) if is_final else None

    def _ruling(self, visit: Visit) -> Disposition:
        ruling = self.politeness.expected(answer_of(visit.task, visit.response))
        return of_request(ruling, visit.task, visit.response).what

    def left(self, visit: Visit) -> None:
        self._entrances.leave(visit.url, visit.response.started, visit.response.session)
        self.pool.refresh(visit.response.session)

    def renders(self, visit: Visit) -> bool:
        """Whether its handler says that a browser renders the page."""
        plan = self._plan_of(visit)
        return plan is not None and plan.render

    # -- running one

    async def handle(self, document: Document) -> Handled:
        """See the contract. Raises ComponentFailed: too many handlers hang, so no more can run."""
        visit = document.visit
        if self._is_refused(visit):
            self.metrics.count("refused_sessions")
            return Handled(again=0.0)
        plan = self._plan_of(visit)
        if plan is None:
            return Handled()
        if visit.response.outcome not in DOCUMENTS and visit.response.outcome is not Outcome.REDIRECT:
            visit = given_up(visit) if self._ruling(visit) is Disposition.GONE else visit
        page = Page(Record(visit), document=document, labels=self.table.labels)
        gathering = Gathering(page.url, self.table.labels, keeps_sessions=bool(self.pool.count))
        made = await self._run(plan, page, gathering)
        if page.session.is_retired:
            self.retired(visit)
        return made

    async def _run(self, plan: HandlerPlan, page: Page, gathering: Gathering) -> Handled:
        """The results of the handler for the page, and its faults. Raises as :meth:`handle`."""
        try:
            if plan.run == "loop":
                async with asyncio.timeout(plan.deadline) as limit:
                    await in_loop(plan, page, gathering)
            else:
                assert self._threads is not None
                await self._threads.run(partial(gather, plan, page, gathering), plan.deadline)
        except Hanging as hanging:
            late = f"it is still at {str(hanging) or plan.place}; its thread is left behind"
            return self._hung(plan, gathering, late)
        except TooManyHang as error:
            raise ComponentFailed(f"{plan.place}: {plan.who} and others do not come back: {error}") from None
        except TimeoutError as error:
            if plan.run == "loop" and limit.expired():
                return self._hung(plan, gathering, "it was cancelled")
            return self._failed(plan, gathering, error)
        except Retry as error:
            if isinstance(error, LoggedOut):
                self.left(page.record.visit)
            self.metrics.count(f"again:{plan.name}")
            return Handled(again=error.after)
        except ParseSkipped:
            return gathering.handled()  # the page's own trouble, which is told with it
        except TooManyFinds:
            self.metrics.count("cut")
            page.document.missed = page.document.missed or TOO_MANY_FINDINGS
            return gathering.handled()
        except Exception as error:
            return self._failed(plan, gathering, error)
        return gathering.handled()

    def _failed(self, plan: HandlerPlan, gathering: Gathering, error: Exception) -> Handled:
        self.metrics.count(f"raised:{plan.name}")
        return gathering.handled(raised(plan.who, error, plan.place))

    def _hung(self, plan: HandlerPlan, gathering: Gathering, what: str) -> Handled:
        self.metrics.count(f"hung:{plan.name}")
        error = TimeoutError(f"it took longer than its deadline of {plan.deadline:g} s; {what}")
        return gathering.handled(raised(plan.who, error, plan.place))


class AbsentSpider(SpiderHandlers):
    """Stands for a spider in the wiring of a crawl. To resume the crawl, `gossamer run` needs the spider again."""

    table = HandlerTable(60.0)

    async def start(self) -> None:
        """Refuse to start, and name the command that goes on with the crawl. Raises UsageError: always."""
        name = shown_file(self.sheet.file) if self.sheet.file else "a program"
        how = f"gossamer run {name} --resume -o DIR" if self.sheet.file else "its spider.run(resume=True, output=DIR)"
        raise UsageError(f"this crawl has handlers of its own, in {name}; go on with {how}")


async def in_loop(plan: HandlerPlan, page: Page, gathering: Gathering) -> None:
    """Run a handler in the running loop. Raises the exception of the handler."""
    made: Any = plan.function(page)
    if hasattr(made, "__aiter__"):
        try:
            async for thing in made:
                gathering.add(thing)
        finally:
            close = getattr(made, "aclose", None)
            if close is not None:
                await close()
        return
    if inspect.isawaitable(made):
        made = await made
    _take(made, gathering)


def gather(plan: HandlerPlan, page: Page, gathering: Gathering) -> None:
    _take(plan.function(page), gathering)


def _take(made: Any, gathering: Gathering) -> None:
    """The results of a handler: one thing, or several, perhaps as a generator that makes them only now."""
    if hasattr(made, "__next__"):
        gathering.add_all(made)
    else:
        gathering.add(made)
