"""Forms: what a browser would send for them."""

from urllib.parse import parse_qsl

import pytest

from gossamer.documents.forms import Form
from gossamer.documents.page import Page
from gossamer.testing.parsing import stored_document
from gossamer.values.errors import UsageError
from gossamer.values.visit import Record


def form(markup: str | bytes, content_type: str = "text/html; charset=utf-8", selector: str = "form") -> Form:
    document = stored_document(
        markup if isinstance(markup, bytes) else markup.encode(),
        url="https://a.test/in?next=1",
        content_type=content_type,
    )
    return Page(Record(document.visit), document=document).form(selector)


def sent(form: Form, **values: object) -> list[tuple[str, str]]:
    request = form.submit(**values).found.request  # type: ignore[arg-type]
    assert request is not None
    return parse_qsl(request.body.decode(), keep_blank_values=True)


LOGIN = """<form id=login method=post action=/session>
<input type=hidden name=token value=x1><input name=user><input type=password name=password>
<input type=checkbox name=stay value=yes checked><input type=checkbox name=news>
<select name=lang><option value=en>English<option selected>de</select>
<textarea name=note>
two
lines</textarea>
<button name=go value=in>In</button><button name=go value=up>Up</button><input type=reset name=r></form>"""


def test_a_form_sends_what_a_browser_would() -> None:
    request = form(LOGIN).submit(user="me", password="ä & b")
    assert (request.url, request.method) == ("/session", "POST")
    assert request.found.request is not None
    assert request.found.request.headers == (("Content-Type", "application/x-www-form-urlencoded"),)
    assert request.found.request.body == (
        b"token=x1&user=me&password=%C3%A4+%26+b&stay=yes&lang=de&note=two%0D%0Alines&go=in"
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"stay": False, "news": True}, [("news", "on")]),
        ({"stay": None}, []),
        ({"lang": ["en", "de"]}, [("stay", "yes"), ("lang", "en"), ("lang", "de")]),
        ({"button": "up"}, [("stay", "yes"), ("go", "up")]),
        ({"button": None}, [("stay", "yes")]),
        ({"extra": {"by_script": "1"}}, [("stay", "yes"), ("by_script", "1")]),
    ],
)
def test_boxes_choices_and_buttons_are_set_by_name(values: dict[str, object], expected: list[tuple[str, str]]) -> None:
    fields = sent(form(LOGIN), **values)
    for entry in expected:
        assert entry in fields
    told = {name for name, _ in expected}
    assert ("stay" in dict(fields)) is ("stay" in told)
    assert ("go" in dict(fields)) is ("button" not in values or values["button"] is not None)


def test_a_get_form_takes_the_place_of_the_query() -> None:
    request = form("<form action='/find?old=1#x'><input name=q value=a></form>").submit(q="b c")
    assert (request.method, request.url) == ("GET", "/find?q=b+c")


def test_a_form_without_action_goes_to_its_page() -> None:
    assert form("<form method=post><input name=q></form>").submit(q="b").url == "https://a.test/in?next=1"


def test_a_form_is_sent_in_the_encoding_of_its_page() -> None:
    latin = "<form method=post><input name=q value='é €'></form>".encode("cp1252")
    request = form(latin, "text/html; charset=iso-8859-1").submit(q="é Ж")
    assert request.found.request is not None and request.found.request.body == b"q=%E9+%26%231046%3B"
    accepting = form(
        "<form method=post accept-charset='nonsense koi8-r'><input name=q><input type=hidden name=_charset_>"
    )
    assert sent(accepting) == [("q", ""), ("_charset_", "koi8-r")]
    request = accepting.submit(q="Ж")
    assert request.found.request is not None and request.found.request.body == b"q=%F6&_charset_=koi8-r"


@pytest.mark.parametrize(
    ("charset", "word", "octets"),
    [
        ("euc-kr", "한글", "%C7%D1%B1%DB"),
        ("shift_jis", "日本", "%93%FA%96%7B"),
        ("euc-jp", "日本", "%C6%FC%CB%DC"),
        ("windows-1251", "ж", "%E6"),
        ("gbk", "中", "%D6%D0"),
        ("big5", "中", "%A4%A4"),
        ("iso-8859-2", "ł", "%B3"),
        ("utf-8", "ж", "%D0%B6"),
    ],
)
def test_a_filled_form_is_sent_in_its_own_encoding_or_else_its_pages(charset: str, word: str, octets: str) -> None:
    own = form(f"<form action=/s accept-charset={charset}><input name=q></form>")
    its_page = form(b"<form action=/s><input name=q></form>", f"text/html; charset={charset}")
    for filled in (own.submit(q=word), its_page.submit(q=word)):
        assert filled.url == f"/s?q={octets}"
    posted = form(f"<form method=post accept-charset={charset}><input name=q></form>").submit(q=word)
    assert posted.found.request is not None and posted.found.request.body == f"q={octets}".encode()


def test_files_travel_in_parts_and_the_same_form_is_the_same_request() -> None:
    upload = form("<form method=post enctype=multipart/form-data><input name=a value=1><input type=file name=f></form>")
    first, second = (upload.submit(f=('x".txt', b"\0\r\n")).found.request for _ in range(2))
    assert first is not None and second is not None and first == second
    boundary = dict(first.headers)["Content-Type"].partition("boundary=")[2].encode()
    assert first.body == (
        b'--%b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        b'--%b\r\nContent-Disposition: form-data; name="f"; filename="x%%22.txt"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n\0\r\n\r\n--%b--\r\n" % (boundary, boundary, boundary)
    )


def test_a_control_belongs_to_the_form_that_browsers_give_it_to() -> None:
    markup = """<table><form id=a method=post><tr><td><input name=in_table value=1></form></table>
    <form id=b method=post><fieldset disabled><legend><input name=legend value=1></legend><input name=off></fieldset>
    <input name=own value=1><input name=other form=c value=1></form><input name=far form=b value=1>"""
    assert sent(form(markup, selector="#a")) == [("in_table", "1")]
    assert sent(form(markup, selector="#b")) == [("legend", "1"), ("own", "1"), ("far", "1")]


def test_the_pressed_button_may_send_the_form_elsewhere() -> None:
    markup = "<form action=/a><input name=q value=1><button formaction=/b formmethod=post name=x>B</button></form>"
    request = form(markup).submit()
    assert (request.method, request.url) == ("POST", "/b")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"usr": "me"}, "the form has no control 'usr'; did you mean 'user'?"),
        ({"button": "delete"}, "the form has no button 'delete'"),
        ({"user": True}, "the control is not a box to check"),
        ({"user": object()}, "user: a control takes text, a number"),
    ],
)
def test_what_a_form_cannot_take_is_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        form(LOGIN).submit(**values)  # type: ignore[arg-type]


def test_a_selector_that_finds_no_form_is_named() -> None:
    with pytest.raises(UsageError, match=r"page.form\('#login'\) finds nothing on https://a.test/in"):
        form("<p>nothing", selector="#login")


def test_a_page_of_many_controls_is_read_in_bounded_time() -> None:
    many = form("<form method=post>" + "<input name=a value=1>" * 20_000 + "</form>")
    assert len(many.fields) == 10_000
