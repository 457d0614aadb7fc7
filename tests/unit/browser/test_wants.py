"""Requests of rendered pages: which are sent, as what, and who gets the answers."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gossamer.browser.needs import VAIN
from gossamer.browser.rendering import Want, WantedAnswer, WantRefused
from gossamer.browser.wants import KEPT, PAUSES, VAIN_FOR, Wants, WantsSheet, want_task
from gossamer.testing import FakeClock
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Record, Response, Visit

Run = Callable[[Coroutine[Any, Any, None]], None]

PAGE = Task("http://h.test/page", "h.test", depth=3)


def answered(task: Task, outcome: Outcome = Outcome.OK, body: bytes = b"x") -> Record:
    return Record(Visit(task, Response(outcome, 200, headers=(("content-type", "text/plain"),), body=body)))


def test_a_want_is_a_task_beside_the_page_of_the_same_url() -> None:
    task = want_task(Want("http://h.test/page", "xhr"), PAGE, posts=False)
    assert (task.host, task.depth, task.source, task.relation) == ("h.test", 3, "http://h.test/page", "render xhr")
    assert task.is_want and task.identity != PAGE.identity


def test_another_proof_of_who_asks_makes_another_request() -> None:
    names = [
        want_task(Want("http://h.test/api", "fetch", headers=fields), PAGE, posts=False).identity
        for fields in ((), (("authorization", "Bearer a"),), (("authorization", "Bearer b"),), (("cookie", "c=1"),))
    ]
    assert len(set(names)) == 4
    image = Want("http://h.test/i.png", "image", headers=(("cookie", "c=1"),))
    assert want_task(image, PAGE, posts=False).request.headers == ()  # type: ignore[union-attr]  # a want has one


@pytest.mark.parametrize(("method", "host", "post", "sent"), [
    ("POST", "h.test", False, False),
    ("POST", "h.test", True, True),
    ("POST", "other.test", True, False),
    ("DELETE", "h.test", True, False),
    ("HEAD", "other.test", False, True),
])  # fmt: skip
def test_methods_that_may_change_something_are_refused(method: str, host: str, post: bool, sent: bool) -> None:
    want = Want(f"http://{host}/", "fetch", method)
    if sent:
        assert want_task(want, PAGE, posts=post).request.method == method  # type: ignore[union-attr]  # a want has one
    else:
        with pytest.raises(WantRefused, match=f"method:{method.lower()}"):
            want_task(want, PAGE, posts=post)


def test_two_pages_that_want_the_same_cause_one_request_and_get_its_answer_when_it_is_kept(run: Run) -> None:
    async def course() -> None:
        wants = Wants()
        task = want_task(Want("http://h.test/app.js", "script"), PAGE, posts=False)
        (first, is_new), (second, is_again) = wants.expect(task), wants.expect(task)
        assert (is_new, is_again) == (True, False)
        wants.stage([answered(task)], None)  # type: ignore[arg-type]  # the group is not touched
        wants.take_back()
        wants.committed({})
        assert not first.done()
        wants.stage([answered(task)], None)  # type: ignore[arg-type]  # as above
        wants.committed({})
        assert (
            (await first) == (await second) == (Outcome.OK, WantedAnswer(200, (("content-type", "text/plain"),), b"x"))
        )
        assert (await wants.known(task)) == WantedAnswer(200, (("content-type", "text/plain"),), b"x")

    run(course())


def test_a_want_that_is_refused_or_fails_is_told_by_its_outcome_and_asked_for_again_by_the_next_page(run: Run) -> None:
    async def course() -> None:
        wants = Wants()
        task = want_task(Want("http://h.test/no", "fetch"), PAGE, posts=False)
        future, _ = wants.expect(task)
        wants.stage([answered(task, Outcome.ROBOTS_DENIED)], None)  # type: ignore[arg-type]  # as above
        wants.committed({})
        assert await future == (Outcome.ROBOTS_DENIED, None)
        assert await wants.known(task) is None
        assert wants.expect(task)[1]

    run(course())


class Course:
    """A page that wants one thing, and how often the crawl was asked for it."""

    def __init__(self, method: str = "GET") -> None:
        self.clock = FakeClock()
        self.wants = Wants(WantsSheet(post=True))
        self.wants.clock = self.clock
        self.sent: list[Task] = []
        self.want = Want("http://h.test/api", "fetch", method)

    async def answer(self, *outcomes: Outcome) -> WantedAnswer:
        """What the page gets where the crawl meets these outcomes, one after the other."""
        asking = asyncio.ensure_future(self.wants.answer(self.want, PAGE, 0.0, self.sent.append))
        for outcome in outcomes:
            while not self.sent:
                await self.clock.advance(1.0)
            task = self.sent.pop()
            assert self.wants.judge_tasks("fetch", [task]) == [""]
            self.wants.stage([answered(task, outcome)], None)  # type: ignore[arg-type]  # the group is not touched
            self.wants.committed({})
        given = await asking
        assert not self.sent
        return given


def test_a_want_that_fails_for_a_moment_is_sent_again_while_its_page_waits(run: Run) -> None:
    async def course() -> None:
        page = Course()
        assert (await page.answer(Outcome.SERVER_ERROR, Outcome.TIMED_OUT, Outcome.OK)).body == b"x"
        with pytest.raises(WantRefused, match="connect_failed"):
            await Course().answer(Outcome.CONNECT_FAILED)

    run(course())


def test_a_want_that_fails_at_every_try_has_one_for_each_page_for_a_while_and_one_that_may_change_something_has_one(
    run: Run,
) -> None:
    async def course() -> None:
        page = Course()
        for tries in (1 + len(PAUSES), 1):
            with pytest.raises(WantRefused, match="timed_out"):
                await page.answer(*[Outcome.TIMED_OUT] * tries)
        await page.clock.advance(VAIN_FOR)
        assert (await page.answer(Outcome.TIMED_OUT, Outcome.OK)).status == 200
        with pytest.raises(WantRefused, match="timed_out"):
            await Course("POST").answer(Outcome.TIMED_OUT)

    run(course())


def test_what_no_page_waits_for_any_more_is_not_asked_for(run: Run) -> None:
    async def course() -> None:
        wants = Wants()
        task = want_task(Want("http://h.test/app.js", "script"), PAGE, posts=False)
        for _ in range(2):
            wants.expect(task)
        wants.leave(task)
        assert wants.judge_tasks("fetch", [task, PAGE]) == ["", ""]
        wants.leave(task)
        assert wants.judge_tasks("fetch", [task, PAGE]) == ["its page has ended", ""]
        wants.expect(task)
        assert wants.judge_tasks("fetch", [task]) == [""]

    run(course())


def test_a_page_that_is_visited_again_gets_answers_younger_than_half_of_the_time_between(run: Run) -> None:
    visited = DocumentRow(PAGE.url, Outcome.OK, 200, 100.0, 0, 1, "a href", "", 0)
    wants = Wants()
    wants.ledger = SimpleNamespace(document={PAGE.identity: visited}.get)
    now = Response(Outcome.OK, 200, started=300.0)
    assert wants.bound(Visit(PAGE, now)) == 200.0
    assert wants.bound(Visit(Task("http://h.test/new", "h.test"), now)) == 0.0

    async def course() -> None:
        task = want_task(Want("http://h.test/api", "fetch"), PAGE, posts=False)
        for started, body in ((101.0, b"old"), (301.0, b"new")):
            record = Record(Visit(task, Response(Outcome.OK, 200, body=body, started=started)))
            wants.stage([record], None)  # type: ignore[arg-type]  # the group is not touched
            wants.committed({})
            given, later = await wants.known(task, started), await wants.known(task, started + 1.0)
            assert given is not None and (given.body, later) == (body, None)

    run(course())


def test_answers_in_memory_are_bounded(run: Run) -> None:
    async def course() -> None:
        wants = Wants()
        for number in range(20):
            task = want_task(Want(f"http://h.test/{number}", "script"), PAGE, posts=False)
            wants.stage([answered(task, body=bytes(KEPT // 8))], None)  # type: ignore[arg-type]  # as above
            wants.committed({})
        assert wants.metrics.snapshot()["kept_bytes"] <= KEPT

    run(course())


class OneDocument:
    """A ledger that is asked for documents, and has none."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def document(self, url: str) -> None:
        self.asked.append(url)


@pytest.mark.parametrize(
    ("want", "serves"),
    [
        (Want("http://h.test/api", "fetch"), True),
        (Want("http://h.test/api", "fetch", headers=(("authorization", "Bearer a"),)), False),
        (Want("http://h.test/api", "fetch", headers=(("cookie", "c=1"),)), False),
        (Want("http://h.test/api", "fetch", "POST"), False),
        (Want("http://h.test/api", "fetch", "HEAD"), False),
    ],
    ids=["plain", "authorization", "cookie", "POST", "HEAD"],
)
def test_the_crawls_own_document_answers_no_request_that_proves_who_asks_or_is_no_get(
    run: Run, tmp_path: Path, want: Want, serves: bool
) -> None:
    wants = Wants(WantsSheet(directory=str(tmp_path), post=True))
    wants.ledger = ledger = OneDocument()  # type: ignore[assignment]  # nothing else of it is asked

    async def course() -> None:
        assert await wants.known(want_task(want, PAGE, posts=True)) is None

    run(course())
    assert ("http://h.test/api" in ledger.asked) is serves


def test_another_run_goes_on_with_what_rendering_has_shown_of_a_host() -> None:
    shell, filled = (
        b"<title>x</title><script></script><div id=root></div>",
        b"<a href=/1>a</a><a href=/2>b</a><a href=/3>c</a>",
    )
    kept: dict[str, bytes] = {}
    group = SimpleNamespace(learnt=lambda host, what, data: kept.__setitem__(host, data))
    pages = [
        Visit(Task(f"http://h.test/vain/{number}", "h.test"), Response(Outcome.OK, 200, body=shell), mime="text/html")
        for number in range(VAIN + 1)
    ]
    first, second = Wants(), Wants()
    for page in pages[:VAIN]:
        assert first.needs.decide(page)
        first.needs.learn(page, shell)
    for number in range(2):  # a group that is taken back is given again
        first.stage([Record(pages[0])], group)
        assert list(kept) == ["h.test"]
        if number == 0:
            first.take_back()
            kept.clear()
    first.committed({})
    second.ledger = SimpleNamespace(learnt=lambda hosts, what: [kept.get(host) for host in hosts])
    second.recall("h.test")
    second.recall("other.test")
    assert not second.needs.decide(pages[VAIN])
    assert second.needs.note("h.test") != kept["h.test"]  # an audit counts
    kept.clear()
    first.stage([Record(pages[0])], group)
    assert not kept, "nothing has changed"
    first.needs.learn(pages[0], filled)
    first.stage([Record(pages[0])], group)
    assert kept
    second.needs.recall("h.test", b"no note")
