"""The index: keys as pywb's, lines sorted and each once, found again whatever the size."""

import json
import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.storage.archive import cdxj
from gossamer.storage.archive.cdxj import Capture, find, found_in, index_line, merge, surt, write_run
from gossamer.storage.archive.contract import INDEX
from gossamer.values.outcome import Outcome
from gossamer.values.url import canonical

#: URL -> key, as pywb 2.10 makes it (`pywb.utils.canonicalize.canonicalize`).
KEYS = {
    "http://www.example.com/": "com,example)/",
    "https://www12.example.com/": "com,example)/",
    "http://wwwx.com/": "com,wwwx)/",
    "http://www.www.com/": "com,www)/",
    "https://Example.COM:443/A/B.html?X=Y": "com,example)/a/b.html?x=y",
    "http://example.com:8080/x": "com,example:8080)/x",
    "http://a.b.example.co.uk/?": "uk,co,example,b,a)/",
    "http://127.0.0.1:8080/a": "1,0,0,127:8080)/a",
    "http://[::1]/x": "::1)/x",
    "http://example.com/path/?b=2&a=1": "com,example)/path?a=1&b=2",
    "http://example.com/?a=1&a=0&b": "com,example)/?a=0&a=1&b",
    "http://example.com/a?b=c=d&a=A%2Fb": "com,example)/a?a=a/b&b=c=d",
    "http://example.com/a//b/": "com,example)/a/b",
    "http://example.com/..%2f//=+": "com,example)/../=+",
    "http://example.com/%7Euser/%E4%BD%A0": "com,example)/~user/%e4%bd%a0",
    "http://example.com/%252541": "com,example)/a",
    "http://example.com/?PHPSESSID=0123456789abcdef0123456789abcdef&z=1": "com,example)/?z=1",
    "http://example.com/?sid=9682993c8daa2c5497996114facdc805": "com,example)/",
    "http://example.com/?cfid=1&cftoken=2&x": "com,example)/?x",
    "http://example.com/(S(4hqa0555fwsecu455xqckv45))/mileg.aspx": "com,example)/mileg.aspx",
    "http://example.com/(4hqa0555fwsecu455xqckv45)/mileg.aspx": "com,example)/mileg.aspx",
    "ftp://example.com/a": "com,example)/a",
}


@pytest.mark.parametrize(("url", "key"), KEYS.items())
def test_a_key_is_that_of_the_tools_of_the_field(url: str, key: str) -> None:
    assert surt(canonical(url)) == key


@given(st.text(max_size=80))
def test_a_key_has_no_space_and_no_end_of_line(text: str) -> None:
    try:
        url = canonical("http://a.test/" + text)
    except ValueError:
        return
    key = surt(url)
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key


def capture(url: str, second: int = 0, **columns: object) -> Capture:
    columns = {"digest": "AB", "mime": "text/html", "status": 200, **columns}
    where = {"warc_file": "warc/x.warc.gz", "warc_offset": second, "warc_length": 9}
    return Capture(url, f"2026-03-01T12:00:{second:02}.000000Z", **{**where, **columns})  # type: ignore[arg-type]


def row(one: Capture) -> bytes:
    return msgspec.json.encode(one) + b"\n"


def test_a_line_is_what_replay_tools_read() -> None:
    line = index_line(capture("http://a.test/b", 7))
    assert line is not None
    key, timestamp, text = line.decode().split(" ", 2)
    assert (key, timestamp) == ("test,a)/b", "20260301120007")
    assert json.loads(text) == {
        "url": "http://a.test/b",
        "mime": "text/html",
        "status": "200",
        "digest": "sha1:AB",
        "length": "9",
        "offset": "7",
        "filename": "x.warc.gz",
    }


@pytest.mark.parametrize("columns", [{"warc_file": ""}, {"noarchive": True}])
def test_what_has_no_copy_is_not_indexed(columns: dict[str, object]) -> None:
    assert index_line(capture("http://a.test/", **columns)) is None


@pytest.mark.parametrize("columns", [{"duplicate_of": "http://b.test/"}, {"outcome": Outcome.NOT_MODIFIED}])
def test_revisits_say_so(columns: dict[str, object]) -> None:
    assert b'"mime":"warc/revisit"' in (index_line(capture("http://a.test/", **columns)) or b"")


@pytest.mark.parametrize(("url", "status"), [("file:///b", 0), ("ftp://a.test/b", 226), ("http://a.test/b", 0)])
def test_what_did_not_come_by_http_has_a_dash_for_a_status(url: str, status: int) -> None:
    line = index_line(capture(url, status=status))
    assert line is not None
    assert json.loads(line.split(b" ", 2)[2])["status"] == "-", (
        "as in an index that pywb makes; 0 is no status of anything"
    )


def test_no_type_of_a_server_forges_a_line() -> None:
    line = index_line(capture("http://a.test/", mime="a\r\n\x1b[31m\u202e x {"))
    assert line is not None
    assert line.endswith(b"\n")
    assert line[:-1].decode().isprintable()


@pytest.mark.parametrize("count", [1, 3, 200])
def test_merged_runs_are_one_sorted_file_with_each_line_once(tmp_path: Path, count: int) -> None:
    assert 3 < cdxj.FAN_IN < 200, "some are merged at once, some in between"
    draw = random.Random(count)
    captures = [capture(f"http://{draw.choice('abc')}.test/{n}", n % 60) for n in range(300)]
    runs = []
    for number in range(count):
        runs.append(tmp_path / f"run-{number}")
        part = captures[number::count] + captures[:3]
        write_run([row(one) for one in part], runs[-1])
    index = tmp_path / INDEX
    wanted = sorted({index_line(one) for one in captures})
    assert merge(runs, index, tmp_path) == 300
    assert index.read_bytes().splitlines(keepends=True) == wanted
    assert merge([index, runs[0]], index, tmp_path) == 300


def test_names_with_brackets_are_merged_and_each_capture_is_there_once(tmp_path: Path) -> None:
    names = ["{a}", "{b}", "{{x}}", "a?{", "?{%22url%22:1}", "z"]
    captures = [capture(f"http://a.test/{name}", second) for name in names for second in (1, 2)]
    captures += [
        msgspec.structs.replace(one, mime="text/plain") for one in captures
    ]  # the same places, told in other words
    runs = [tmp_path / "one", tmp_path / "two"]
    for number, path in enumerate(runs):
        write_run([row(one) for one in captures[number::2]], path)
    assert merge(runs, tmp_path / "index", tmp_path) == 2 * len(names)
    for name in names:
        assert len(find(tmp_path / "index", f"http://a.test/{name}")) == 2


@pytest.mark.parametrize("line", [b"", b"a)/\n", b"a)/ 2026\n", b"a)/ 2026 {\n", b"a)/ \xff {}\n", b"{} {} {}\n"])
def test_a_line_that_is_no_capture_is_told_as_such(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):  # a missing blank, a byte that is no digit, or JSON that is none
        cdxj.read_line(line)


def test_every_capture_is_found_again_and_nothing_else(tmp_path: Path) -> None:
    captures = [capture(f"http://a.test/{n}", s) for n in range(40) for s in (3, 1, 2)]
    captures.append(capture("http://a.test/7?", 5))
    write_run([row(one) for one in captures], tmp_path / "run")
    for n in range(40):
        found = find(tmp_path / "run", f"http://a.test/{n}")
        assert [one.timestamp[-2:] for one in found] == ["01", "02", "03"]
        assert {one.entry.url for one in found} == {f"http://a.test/{n}"}
    assert [one.timestamp[-2:] for one in find(tmp_path / "run", "http://a.test/7?")] == ["05"]
    assert find(tmp_path / "run", "http://a.test/") == find(tmp_path / "run", "http://zz.test/") == []
    assert find(tmp_path / "none", "http://a.test/1") == []


def test_rows_without_an_index_are_searched_as_well() -> None:
    rows = [row(capture("http://a.test/1", 2)), row(capture("http://a.test/12", 1)), row(capture("http://a.test/1", 1))]
    assert [one.timestamp[-2:] for one in found_in(rows, "http://a.test/1")] == ["01", "02"]
