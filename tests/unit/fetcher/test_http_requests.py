"""http: requests that are no plain GET. What is sent is what was asked for, and what is archived is what was sent."""

from typing import Any

import pytest

from gossamer.fetcher.contract import RequestSender
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import MAX_BODY, requested
from gossamer.values.task import Task
from gossamer.values.visit import Response


def asking(url: str, *arguments: Any, **named: Any) -> Task:
    return Task(url, host="host", request=requested(*arguments, **named))


def exchange(run: Any, fetching: Any, *tasks: Any, page: FakePage | None = None, sheet: HttpSheet | None = None) -> Any:
    """Requests and responses of some tasks; each is made from the URL of the page."""

    async def body() -> tuple[list[FakeRequest], list[Response]]:
        async with FakeWeb({"/": page or FakePage("ok")}) as web, fetching(web, sheet) as module:
            found = []
            for one in tasks:
                task = one(web.url("/"))
                found.append(await (module.fetch(task) if task.request is None else module.send(task)))
            return list(web.requests), found

    return run(body())


def test_the_http_module_sends_requests() -> None:
    assert isinstance(HttpModule(), RequestSender)


@pytest.mark.parametrize("body", [b"", b"a=1&b=%20", b"\0\xff" * 10, b"x" * MAX_BODY])
def test_a_post_is_sent_with_its_body_and_fields_and_archived_as_sent(run: Any, fetching: Any, body: bytes) -> None:
    fields = (("X-Own", "1"), ("Accept", "application/json"))
    [sent], [response] = exchange(run, fetching, lambda url: asking(url, "POST", body, fields))
    assert (sent.method, sent.body, sent.header("x-own")) == ("POST", body, "1")
    assert sent.header("accept") == "application/json", "its own field stands in the place of the crawl's"
    assert sent.head.lower().count(b"\r\naccept:") == 1
    assert sent.header("content-type") == "application/x-www-form-urlencoded"
    assert not sent.header("expect")
    assert response.outcome is Outcome.OK
    assert sorted(response.request_head.split(b"\r\n")) == sorted(sent.head.split(b"\r\n"))


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"])
def test_other_methods_are_sent_as_they_are_called(run: Any, fetching: Any, method: str) -> None:
    [sent], [response] = exchange(run, fetching, lambda url: asking(url, method))
    assert (sent.method, response.status) == (method, 200)
    assert response.request_head.split(b"\r\n")[0] == sent.head.split(b"\r\n")[0]


def test_nothing_of_a_request_reaches_the_next_one(run: Any, fetching: Any) -> None:
    plain = lambda url: Task(url, host="host")  # noqa: E731
    post = lambda url: asking(url, "POST", b"a", (("X-Own", "1"),))  # noqa: E731
    sent, _ = exchange(run, fetching, plain, post, plain)
    assert [one.method for one in sent] == ["GET", "POST", "GET"]
    assert sent[0].head == sent[2].head and not sent[2].header("x-own") and not sent[2].body


def test_what_proves_who_asks_is_sent_and_not_archived(run: Any, fetching: Any) -> None:
    fields = (("Authorization", "Bearer secret"), ("Cookie", "id=secret"))
    [sent], [response] = exchange(run, fetching, lambda url: asking(url, "POST", b"a", fields))
    assert sent.header("authorization") == "Bearer secret" and sent.header("cookie") == "id=secret"
    assert b"secret" not in response.request_head


def test_a_request_with_cookies_of_its_own_sends_one_cookie_field(run: Any, fetching: Any) -> None:
    sheet = HttpSheet(cookies="host")
    page = FakePage("ok", headers=(("Set-Cookie", "jar=1"),))
    first = lambda url: Task(url, host="host")  # noqa: E731
    second = lambda url: asking(url, "POST", b"a", (("Cookie", "own=2"),))  # noqa: E731
    sent, _ = exchange(run, fetching, first, second, page=page, sheet=sheet)
    assert sent[1].head.lower().count(b"\r\ncookie:") == 1
    assert sorted(sent[1].header("cookie").split("; ")) == ["jar=1", "own=2"]


@pytest.mark.parametrize("safe", [False, True])
def test_a_request_that_may_have_been_received_says_so(run: Any, fetching: Any, safe: bool) -> None:
    dropped = FakePage(raw=b"")
    [_], [response] = exchange(run, fetching, lambda url: asking(url, "POST", b"a", is_safe=safe), page=dropped)
    assert response.outcome not in (Outcome.OK, Outcome.CONNECT_FAILED)
    assert response.is_met


def test_a_request_that_reached_nobody_may_be_sent_again(run: Any, fetching: Any) -> None:
    async def body() -> Response:
        async with FakeWeb({"/": "ok"}) as gone:
            pass
        async with fetching(gone) as module:
            response: Response = await module.send(asking(gone.url("/"), "POST", b"a"))
            return response

    response = run(body())
    assert response.outcome is Outcome.CONNECT_FAILED and not response.is_met


def test_one_that_may_not_be_sent_twice_has_a_connection_of_its_own(run: Any, fetching: Any) -> None:
    plain = lambda url: Task(url, host="host")  # noqa: E731
    sent, _ = exchange(run, fetching, plain, lambda url: asking(url, "POST", b"a"), plain)
    assert sent[1].connection != sent[0].connection and sent[2].connection != sent[1].connection
