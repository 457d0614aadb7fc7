"""The owner's sheet: read from TOML and options; every mistake is one line that says what to write."""

from pathlib import Path

import pytest

from gossamer.mobile.sources.owner import OwnerSheet, parse_sheet, read_sheet
from gossamer.values.errors import UsageError

SHEET = """
refuse = ['path("/private/**")']
ignore_htaccess = ["example.org"]
delay = "2s"

[serve]
"https://example.org" = "/var/www/html"
"intranet.example.org:8000" = "http://127.0.0.1:8080/"
archive = "mycrawl"

[limits]
requests = 1000
bytes = "1GB"
time = "10m"
max_page_size = "2MB"
"""


def test_a_sheet_says_what_is_served_and_what_is_refused() -> None:
    sheet = parse_sheet(SHEET)
    files, server, archive = sheet.hosts()
    assert (files.kind, files.place, files.host, files.scheme) == ("files", "/var/www/html", "example.org", "https")
    assert (server.kind, server.place, server.host) == ("server", "http://127.0.0.1:8080", "intranet.example.org:8000")
    assert (archive.kind, archive.place) == ("archive", "mycrawl")
    assert [one.source for one in sheet.refusals()] == ['path("/private/**")']
    assert (sheet.delay, sheet.limits.bytes, sheet.limits.time, sheet.limits.max_page_size) == (
        2,
        10**9,
        600,
        2 * 10**6,
    )


def test_an_option_takes_the_place_of_the_sheets_entry_for_the_same_name(tmp_path: Path) -> None:
    file = tmp_path / "runtime.toml"
    file.write_text('[serve]\n"a.example" = "/a"\n"b.example" = "/b"\n')
    sheet = read_sheet(file, ["b.example=/c"])
    assert sheet.serve == {"a.example": "/a", "b.example": "/c"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("serve = [", "runtime.toml: not TOML"),
        ("delay = -1\n", "runtime.toml: delay: expected a number >= 0.0; change the value"),
        ("delay = 'soon'\n", "runtime.toml: delay: 'soon' is not a quantity"),
        ("refus = []\n", "runtime.toml: refus: unknown key; did you mean 'refuse'"),
        ("[limits]\nbites = 1\n", "runtime.toml: limits.bites: unknown key; did you mean 'bytes'"),
        ("[limits]\nbytes = 'many'\n", "runtime.toml: limits.bytes: 'many' is not a quantity"),
        ("[serve]\na = 1\n", "runtime.toml: serve[...]: expected a text, got a whole number; change the value"),
        ("[serve]\na = 2026-01-01\n", "runtime.toml: serve[...]: expected a text, got a date; change the value"),
        (
            '[senders.a]\nhosts = "x"\n',
            "runtime.toml: senders[...].hosts: expected a list, got a text; change the value",
        ),
        ("limits = 3\n", "runtime.toml: limits: expected a table, got a whole number; change the value"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_its_place(text: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_sheet(text)
    assert str(refused.value).startswith(told) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("serve", "told"),
    [
        ([], "nothing is served; give --serve"),
        (["/var/www"], "--serve '/var/www': write HOST=FOLDER"),
        (["=x"], "--serve '=x': write HOST=FOLDER"),
        (["a.example=/a", "a.example=/b"], "--serve a.example: given twice"),
        (["a.example=/a", "http://a.example=/b"], "serve a.example: given twice"),
        (["a.example/docs=/a"], "serve 'a.example/docs': not a host"),
        (["ftp://a.example=/a"], "serve 'ftp://a.example': not a host"),
        (["me@a.example=/a"], "serve 'me@a.example': not a host"),
        (["a b=/a"], "serve 'a b': not a host"),
        (["a.example=https://127.0.0.1"], "serve a.example='https://127.0.0.1': not a local server"),
        (["a.example=http://127.0.0.1/app"], "serve a.example='http://127.0.0.1/app': not a local server"),
        (["a.example=http://10.0.0.1:80"], "serve a.example=http://10.0.0.1:80: not on this machine"),
        (["a.example=http://a.example"], "serve a.example=http://a.example: not on this machine"),
    ],
)
def test_a_mistake_in_an_option_is_one_line_that_says_what_to_write(serve: list[str], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_sheet(None, serve)
    assert str(refused.value).startswith(told) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("refuse = ['path(']", "refuse 'path(': "),
        ("refuse = ['title = x']", "refuse 'title = x': "),
        (
            "ignore_htaccess = ['b.example']",
            "ignore_htaccess 'b.example': no files are served for it; did you mean",
        ),
    ],
)
def test_what_makes_no_sense_beside_the_rest_is_refused(tmp_path: Path, more: str, told: str) -> None:
    file = tmp_path / "runtime.toml"
    file.write_text(f'{more}\n[serve]\n"a.example" = "/a"\n')
    with pytest.raises(UsageError) as refused:
        read_sheet(file)
    assert str(refused.value).startswith(told) and "\n" not in str(refused.value)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"#" * (1 << 20) + b"#"])
def test_a_file_that_is_no_sheet_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "runtime.toml"
    file.write_bytes(data)
    with pytest.raises(UsageError, match=r"UTF-8|more than"):
        read_sheet(file)
    with pytest.raises(UsageError, match=r"none\.toml cannot be read"):
        read_sheet(tmp_path / "none.toml")


def test_an_empty_sheet_has_limits() -> None:
    assert OwnerSheet().limits.requests > 0 and OwnerSheet().limits.max_page_size == 16 << 20
