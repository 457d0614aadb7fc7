"""`gossamer robots`: offline by a file, and by asking hosts of this machine."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakeWeb, Page

TEXT = "User-agent: *\nDisallow: /private\nAllow: /private/open$\n"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give the command something to read on standard input."""

    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def test_a_file_is_judged_offline_with_rule_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "robots.txt"
    path.write_text(TEXT)
    urls = [f"http://a.test{path}" for path in ("/private/x", "/private/open", "/")]
    assert main(["robots", "--file", str(path), *urls]) == 0
    assert lines(capsys) == [
        ["denied", urls[0], "Disallow: /private (line 2)"],
        ["allowed", urls[1], "Allow: /private/open$ (line 3)"],
        ["allowed", urls[2], "no rule"],
    ]


def test_the_file_may_come_from_standard_input(given: Any, capsys: pytest.CaptureFixture[str]) -> None:
    given("User-agent: other\nDisallow: /")
    assert main(["robots", "--file", "-", "--agent", "Other", "http://a.test/x"]) == 0
    assert lines(capsys) == [["denied", "http://a.test/x", "Disallow: / (line 2)"]]


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_urls_may_come_from_standard_input(
    arguments: list[str], given: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "robots.txt"
    path.write_text(TEXT)
    given("http://a.test/private\n\n  http://a.test/\n")
    assert main(["robots", "--file", str(path), *arguments]) == 0
    assert [line[0] for line in lines(capsys)] == ["denied", "allowed"]


def test_a_url_forges_no_line_of_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r").write_text("")
    assert main(["robots", "--file", str(tmp_path / "r"), "http://a.test/\nallowed\t\x1b[31m"]) == 0
    assert lines(capsys) == [["allowed", r"http://a.test/\nallowed\t\x1b[31m", "no rule"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--file", "/nowhere/robots.txt", "http://a.test/"],
        ["--file", "-"],
        ["--agent", "", "http://127.0.0.1/"],
        ["not a url"],
        ["ftp://127.0.0.1/"],
        ["http://10.0.0.1/"],
        ["--resolve", "junk", "http://a.test/"],
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robots", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1 and told.err.startswith("gossamer: ")


def serve(pages: dict[str, Page], paths: list[str], run: Any) -> tuple[int, list[str]]:
    """Ask for the paths of a host on this machine; the exit status, and what the host was asked for."""

    async def body() -> tuple[int, list[str]]:
        import asyncio

        async with FakeWeb(pages) as web:
            arguments = ["robots", *(web.url(path) for path in paths)]
            return await asyncio.to_thread(main, arguments), [request.target for request in web.requests]

    return run(body())


def test_each_host_is_asked_once_and_its_redirects_are_followed(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pages = {
        "/robots.txt": Page(status=301, headers=(("Location", "/moved.txt"),)),
        "/moved.txt": Page(TEXT, type="text/plain"),
    }
    status, asked = serve(pages, ["/private/x", "/", "/robots.txt"], run)
    assert (status, asked) == (0, ["/robots.txt", "/moved.txt"])
    assert [line[0] for line in lines(capsys)] == ["denied", "allowed", "allowed"]


def test_without_a_robots_txt_everything_is_allowed(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve({}, ["/x"], run) == (0, ["/robots.txt"])
    assert lines(capsys)[0][2] == "no robots.txt"


def test_a_host_that_asks_us_to_wait_denies_for_now_and_is_exit_4(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve({"/robots.txt": Page(status=429)}, ["/x"], run) == (4, ["/robots.txt"])
    assert lines(capsys)[0][::2] == ["denied", "robots.txt: 429"]
