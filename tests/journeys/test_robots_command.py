"""`gossamer robots`: offline by a file, and by asking hosts of this machine."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakePage, FakeWeb

TEXT = "User-agent: *\nDisallow: /private\nAllow: /private/open$\n"


def piped(text: str, *arguments: str) -> list[list[str]]:
    """What the command says when it has this to read."""
    command = [sys.executable, "-m", "gossamer", "robots", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


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


def test_the_file_may_come_from_standard_input() -> None:
    told = piped("User-agent: other\nDisallow: /", "--file", "-", "--agent", "Other", "http://a.test/x")
    assert told == [["denied", "http://a.test/x", "Disallow: / (line 2)"]]


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_urls_may_come_from_standard_input(arguments: list[str], tmp_path: Path) -> None:
    path = tmp_path / "robots.txt"
    path.write_text(TEXT)
    told = piped("http://a.test/private\n\n  http://a.test/\n", "--file", str(path), *arguments)
    assert [line[0] for line in told] == ["denied", "allowed"]


def test_neither_a_url_nor_a_rule_forges_a_line_of_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r").write_text("User-agent: *\nDisallow: /\t\x1b[31m*")
    assert main(["robots", "--file", str(tmp_path / "r"), "http://a.test/\nallowed", "http://a.test/\t\x1b[31m"]) == 0
    assert lines(capsys) == [
        ["allowed", r"http://a.test/\nallowed", "no rule"],
        ["denied", r"http://a.test/\t\x1b[31m", r"Disallow: /\t\x1b[31m* (line 2)"],
    ]


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


def serve(pages: dict[str, FakePage], paths: list[str], run: Any) -> tuple[int, list[str]]:
    """Ask for the paths of a host on this machine; the exit status, and what the host was asked for."""

    async def body() -> tuple[int, list[str]]:
        async with FakeWeb(pages) as web:
            arguments = ["robots", *(web.url(path) for path in paths)]
            return await asyncio.to_thread(main, arguments), [
                request.target for request in (*web.errands, *web.requests)
            ]

    return run(body())


def test_each_host_is_asked_once_and_its_redirects_are_followed(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pages = {
        "/robots.txt": FakePage(status=301, headers=(("Location", "/moved.txt"),)),
        "/moved.txt": FakePage(TEXT, type="text/plain"),
    }
    status, asked = serve(pages, ["/private/x", "/", "/robots.txt"], run)
    assert (status, asked) == (0, ["/robots.txt", "/moved.txt"])
    assert [line[0] for line in lines(capsys)] == ["denied", "allowed", "allowed"]


def test_without_a_robots_txt_everything_is_allowed(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve({}, ["/x"], run) == (0, ["/robots.txt"])
    assert lines(capsys)[0][2] == "no robots.txt"


def test_a_host_that_asks_us_to_wait_denies_for_now_and_is_exit_4(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve({"/robots.txt": FakePage(status=429)}, ["/x"], run) == (4, ["/robots.txt"])
    assert lines(capsys)[0][::2] == ["denied", "robots.txt: 429"]
