"""Requests of programs: what is sent, what each is known by, and which are refused with the part that is wrong."""

import json
from typing import Any

import pytest

from gossamer.values.errors import UsageError
from gossamer.values.request import LONGEST_RETRY, LoggedOut, Request, Retry, unpacked
from gossamer.values.request_identity import MAX_BODY, MAX_DATA, is_secret


def sent(**parts: Any) -> Any:
    found = Request("http://a.test/", **parts).found
    assert found.request is not None
    return found.request


def test_a_request_that_says_nothing_more_is_the_link_to_its_url() -> None:
    assert Request("http://a.test/").found.request is None
    assert Request("http://a.test/", method="GET", headers={}, cookies={}).found.request is None
    assert Request("").found.request is None


@pytest.mark.parametrize(
    ("parts", "body", "kind"),
    [
        ({"body": b"\x00"}, b"\x00", None),
        ({"body": "ä"}, "ä".encode(), "text/plain; charset=utf-8"),
        ({"body": {"a": "1 2", "b": "ä"}}, b"a=1+2&b=%C3%A4", "application/x-www-form-urlencoded"),
        ({"json": {"a": [1, None]}}, b'{"a":[1,null]}', "application/json"),
        ({"json": 0}, b"0", "application/json"),
    ],
)
def test_a_body_makes_a_post_with_its_media_type(parts: dict[str, Any], body: bytes, kind: str | None) -> None:
    request = sent(**parts)
    assert (request.method, request.body, dict(request.headers).get("Content-Type")) == ("POST", body, kind)
    assert not request.is_safe and sent(**parts, safe=True).is_safe


def test_a_media_type_that_is_given_is_sent_whatever_its_case() -> None:
    request = sent(body={"a": "1"}, headers={"content-TYPE": "text/x-own"})
    assert request.headers == (("content-TYPE", "text/x-own"),)


def test_cookies_are_one_field() -> None:
    assert sent(cookies={"a": "1", "b": "2"}).headers == (("Cookie", "a=1; b=2"),)


def test_data_comes_back_as_it_was() -> None:
    value = {"n": 1, "list": [None, True, 1.5], "text": "ä"}
    assert unpacked(sent(data=value).data) == value
    assert unpacked(b"") is None


def test_requests_are_told_apart_by_method_body_and_key_and_by_nothing_else() -> None:
    marks = [
        sent(**parts).mark
        for parts in (
            {"method": "HEAD"}, {"body": b"a"}, {"body": b"b"}, {"method": "PUT", "body": b"a"}, {"key": "k"},
            {"method": "POST"}, {"body": b"a", "key": "k"},
        )
    ]  # fmt: skip
    assert len(set(marks)) == len(marks) and all(marks)
    assert sent(headers={"A": "1"}).mark == sent(label="x").mark == sent(priority=1).mark == ""
    assert sent(body=b"a", label="x", headers={"A": "1"}).mark == sent(body=b"a").mark


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"method": "post"}, "'post'; write it in capitals, as POST"),
        ({"method": "GE T"}, "cannot have the method"),
        ({"body": b"x", "json": {}}, "a body or json, not both"),
        ({"body": 7}, "not int"),
        ({"body": b"x" * (MAX_BODY + 1)}, f"{MAX_BODY:,} can be kept"),
        ({"data": "x" * MAX_DATA}, f"{MAX_DATA:,} can be kept"),
        ({"data": {"when": object()}}, r"data\.when"),
        ({"json": {"when": {object()}}}, r"json\.when"),
        ({"label": "a\nb"}, "one line"),
        ({"key": "x" * 257}, "256 can be kept"),
        ({"headers": {"A B": "1"}}, "'A B' of a request cannot be sent"),
        ({"headers": {"A": "1\r\nB: 2"}}, "cannot be sent"),
        ({"headers": {"Host": "b.test"}}, "'Host' of a request is not yours to set"),
        ({"headers": {f"A{n}": "1" for n in range(65)}}, "64 can be kept"),
        ({"cookies": {"a": "1\r\nB: 2"}}, "'Cookie' of a request cannot be sent"),
        ({"priority": 256}, "from -255 to 255, not 256"),
        ({"redirects": "sometimes"}, "redirects='sometimes'"),
    ],
)
def test_what_cannot_be_sent_or_kept_is_refused_where_it_is_made(parts: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        Request("http://a.test/", **parts)
    assert "\n" not in str(caught.value)


def test_a_request_shows_itself_without_what_it_sends() -> None:
    request = Request("http://a.test/", body={"token": "secret"}, label="in", headers={"Authorization": "secret"})
    assert repr(request) == "<Request POST http://a.test/ label='in'>"
    assert (request.url, request.method, request.label) == ("http://a.test/", "POST", "in")


def test_a_request_made_of_a_link_is_that_link() -> None:
    found = Request("http://a.test/", label="x").found
    assert Request.of(found).found is found and Request.of(found).kept() is found


@pytest.mark.parametrize("after", [-1, LONGEST_RETRY + 1, float("nan"), float("inf"), "5", None])
def test_a_retry_waits_for_a_number_of_seconds_up_to_a_day(after: Any) -> None:
    with pytest.raises(UsageError, match="give seconds, from 0 to 86400"):
        Retry(after=after)


def test_a_retry_says_how_long_it_waits_and_why() -> None:
    assert (Retry(after=3).after, str(Retry(after=3)), str(Retry(3, "empty"))) == (
        3.0,
        "asked for again after 3 s",
        "empty",
    )
    assert (LoggedOut().after, str(LoggedOut()), json.dumps(str(LoggedOut("gone")))) == (
        0,
        "no user is logged in",
        '"gone"',
    )


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("name", "value", "looks_secret"),
    [
        ("X-Api-Key", "1", True),
        ("X-Custom", JWT, True),
        ("X-Custom", "ghp_0123456789abcdef", True),
        ("X-Custom", "AWS4-HMAC-SHA256 Credential=AKID/20260101", True),
        ("X-Custom", "OAuth realm=x", True),
        ("X-Custom", "eyJust.a.text", False),
        ("X-Custom", "sk-", False),
        ("Accept-Language", "de", False),
        ("X-Custom", "basically open", False),
    ],
)
def test_a_field_looks_secret_by_its_name_or_by_what_secrets_begin_with(
    name: str, value: str, looks_secret: bool
) -> None:
    assert is_secret(name, value) is looks_secret
