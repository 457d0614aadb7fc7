"""Answers for pages that are rendered again: out of the archive of a crawl, and from nowhere else.

Place in the flow: `gossamer reprocess --render` puts :class:`KeptAnswers` in the place of
:class:`~gossamer.browser.wants.Wants`; the stage `render` is the one of a crawl (:func:`rendered_again`).

Promises:
    1. Nothing is sent: a request that the archive has no answer for is refused as `not_archived`.
    2. A page gets the answers that it had in the crawl: of each request, the last one before its rendering had ended.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.browser.chromium import program
from gossamer.browser.needs import Needs
from gossamer.browser.options import RENDER, SHOWN
from gossamer.browser.rendering import Want, WantedAnswer, WantRefused
from gossamer.browser.wants import archived_answer, want_task
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ComponentPlan, ProviderPlan, Wiring
from gossamer.query.archive import ArchiveReader
from gossamer.query.database import Database
from gossamer.storage.archive.reading import ArchivedRecord
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.request_identity import identity_of
from gossamer.values.task import WANT, Task
from gossamer.values.visit import Location, Visit

#: The name of the provider, in the catalog and in a wiring.
KEPT_ANSWERS = "kept-answers"

#: Seconds by which the times of two requests may be written differently: rows have milliseconds.
_ROUNDING = 0.002

_ANSWERS = """
    SELECT url, request, fetched_at, warc_file, warc_offset, warc_length FROM pages_all
    WHERE warc_file IS NOT NULL AND starts_with(relation, ?) ORDER BY fetched_at
"""


class KeptAnswersSheet(Sheet, frozen=True):
    directory: Annotated[
        str,
        setting("Take answers from this crawl directory.", restart="it is the crawl's directory", names="a folder"),
    ] = ""


class _Answers(msgspec.Struct):
    """The answers to one request, in the order of time."""

    times: list[float] = []
    places: list[Location] = []


class KeptAnswers(Provider[KeptAnswersSheet]):
    """Answers wants out of the archive. Contract: `PageAnswers`."""

    def __init__(self, sheet: KeptAnswersSheet | None = None) -> None:
        super().__init__(sheet)
        self._reader = ArchiveReader(Path(self.sheet.directory))
        self.needs = Needs()
        self._answers: dict[str, _Answers] = {}
        """By the identity of a request, and by that without the proof of who asked."""

    async def start(self) -> None:
        """Learn where the answers lie."""
        with Database(Path(self.sheet.directory)) as tables:
            for url, mark, fetched_at, *place in tables.ask(_ANSWERS, [WANT]):
                method, body, *_ = f"{mark or 'GET -'} -".split(" ")
                for one in {mark or "", f"{method} {body}"}:
                    answers = self._answers.setdefault(identity_of(str(url), one), _Answers())
                    answers.times.append(fetched_at.replace(tzinfo=UTC).timestamp())
                    answers.places.append(Location(*place))

    def recall(self, host: str) -> None:
        """It learns anew: the ledger belongs to the crawl."""

    def bound(self, page: Visit) -> float:
        """When its rendering had ended; a page that was not rendered may have any answer."""
        return inf if page.rendered is None else page.response.started + page.rendered.seconds + _ROUNDING

    async def answer(self, want: Want, page: Task, bound: float, send: Callable[[Task], None]) -> WantedAnswer:
        """The answer of that time. Raises WantRefused: the archive has none."""
        task = want_task(want, page, posts=True)
        assert task.request is not None
        method, body, *_ = task.request.mark.split(" ")
        for one in (task.identity, identity_of(task.url, f"{method} {body}")):
            if (answers := self._answers.get(one)) is not None:
                place = answers.places[_last(answers.times, bound)]
                return await asyncio.to_thread(self._given, task.url, partial(self._reader.record, place))
        if method != "GET":
            raise WantRefused("not_archived")
        return await asyncio.to_thread(self._document, task.url, bound)

    def give_up(self) -> None:
        """It waits for nothing."""

    def _document(self, url: str, bound: float) -> WantedAnswer:
        """The crawl's own document of a URL, as that of a script which it fetched with a page that no browser showed."""
        captures = self._reader.captures(url)
        if not captures:
            raise WantRefused("not_archived")
        times = [datetime.strptime(f"{one.timestamp}+0000", "%Y%m%d%H%M%S%z").timestamp() for one in captures]
        return self._given(url, partial(self._reader.read, captures[_last(times, bound)]))

    def _given(self, url: str, read: Callable[[], ArchivedRecord]) -> WantedAnswer:
        try:
            record = read()
            return archived_answer(record, self._reader.original(record, url))
        except (CrawlDirectoryError, UsageError, OSError):
            raise WantRefused("not_archived") from None


def _last(times: Sequence[float], bound: float) -> int:
    """Which is the last one until then; the first one of all if there is none."""
    return max(bisect_right(times, bound) - 1, 0)


def rendered_again(wiring: Wiring, directory: Path, browser: str) -> Wiring:
    """The wiring of a run over the archive in which pages are rendered: those that a browser showed in the crawl, and those that
    seem to need one.

    Args:
        wiring: of the crawl, with the stage or without.
        directory: of the crawl.
        browser: the program; if empty, the crawl's own, or the Chromium of this machine.

    Raises:
        UsageError: there is no browser.
        WiringError: the wiring has no stage that fetches.
    """
    name, plan = next(
        ((name, plan) for name, plan in wiring.components.items() if plan.use == RENDER),
        (RENDER, ComponentPlan(RENDER)),
    )
    settings = {**plan.settings, "browser": browser or plan.settings.get("browser", ""), "screenshot": False}
    if not Path(str(settings.get("profile", ""))).is_file():
        settings["profile"] = ""  # the log-in may be over, and its file gone
    program(str(settings["browser"]))
    providers = {**wiring.providers, KEPT_ANSWERS: ProviderPlan(KEPT_ANSWERS, settings={"directory": str(directory)})}
    components = dict(wiring.components)
    if name not in components:
        fetch = next((name for name, one in components.items() if one.use == "fetch"), "")
        if not fetch:
            raise WiringError(f"{wiring.source}: no component uses 'fetch', so that no page can be rendered")
        behind = components[fetch].ports["visits"]
        components[fetch] = msgspec.structs.replace(
            components[fetch], ports={**components[fetch].ports, "visits": SHOWN}
        )
        plan = msgspec.structs.replace(plan, ports={"inbox": SHOWN, "outbox": behind})
    components[name] = msgspec.structs.replace(
        plan, settings=settings, providers={"answers": KEPT_ANSWERS, "choosers": {}}
    )
    return msgspec.structs.replace(wiring, components=components, providers=providers)
