"""The live panel: lines that fit, and nothing left behind when the terminal changes its size."""

import fcntl
import os
import pty
import re
import struct
import termios
from typing import Any

import pytest

from gossamer.cli.progress import line_of, panel_lines
from gossamer.cli.showing import Panel, cut, fitted, shown_wait, size_of
from gossamer.crawls.control.standing import CrawlStanding, FailingHost, SlowHost
from gossamer.crawls.control.waits import DataSet, Wait

AT = 1_700_000_000.0

BUSY = CrawlStanding(
    crawl="crawl-example.org-2026-01-31",
    state="running",
    pages=1_234_567,
    fetched=1_400_000,
    bytes=123_456_789,
    outcomes={"ok": 1_300_000, "redirect": 20_000, "server_error": 9_999, "timed_out": 12},
    errors=10_011,
    failing=[FailingHost("a-host-with-a-long-name.example.org", 9_999), FailingHost("b.example", 12)],
    queued=7_654_321,
    in_flight=64,
    hosts=4_321,
    seconds=7_384.0,
    pages_per_second=120.5,
    recent_pages_per_second=98.7,
    estimate=65_000.0,
    slowest=[SlowHost("slow.example", 9.5)],
    waits=[
        Wait("retries", urls=12, hosts=2, until=AT + 42, names=["a.example", "b.example"]),
        Wait("slow_pages", urls=1, names=["http://b.example/" + "x" * 500], seconds=75.0),
    ],
    sizes=[DataSet("archive", 123_456_789, 2_000_000.0), DataSet("seen", 9_000_000, 0.0, 9_000_000)],
)


class Screen:
    """A terminal of the kind that breaks its lines anew when its width changes."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines: list[str] = [""]
        """Lines as they were written, each as long as it is."""
        self.row = 0
        """Row of the cursor, among rows."""
        self.column = 0

    def rows(self) -> list[tuple[int, str]]:
        """Number of the line, and the text, of each row."""
        found = []
        for number, line in enumerate(self.lines):
            parts = [line[at : at + self.columns] for at in range(0, len(line), self.columns)] or [""]
            found += [(number, part) for part in parts]
        return found

    def resize(self, columns: int) -> None:
        """The cursor stays at the end of the last row, where a panel leaves it."""
        assert self.row == len(self.rows()) - 1
        self.columns = columns
        self.row = len(self.rows()) - 1

    def feed(self, text: str) -> None:
        for part in re.findall(r"\x1b\[\d*[AJ]|\r|\n|[^\x1b\r\n]+", text):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.lines.append("")
                self.row, self.column = len(self.rows()) - 1, 0
            elif part.endswith("A") and part.startswith("\x1b"):
                self.row = max(0, self.row - int(part[2:-1]))
            elif part == "\x1b[J":
                assert self.column == 0
                number = self.rows()[self.row][0]
                above = [text for line, text in self.rows()[: self.row] if line == number]
                self.lines = [*self.lines[:number], "".join(above)]
                self.row = len(self.rows()) - 1
            else:
                self.lines[-1] += part
                self.row, self.column = len(self.rows()) - 1, len(part)


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_the_panel_is_four_lines_that_fit_at_every_width(columns: int) -> None:
    lines = panel_lines(BUSY, columns - 1, AT)
    assert len(lines) == 4
    assert all(0 < len(line) < columns for line in lines)
    assert lines[0].startswith("1,234,567 pages")
    assert "waits: " in lines[2]


def test_the_panel_says_what_matters_first_and_more_where_there_is_room() -> None:
    narrow, usual, wide = ("\n".join(panel_lines(BUSY, columns - 1, AT)) for columns in (40, 80, 200))
    assert "waits: retries of 12 URLs of 2 hosts" in narrow
    assert "98.7 pages/s, mean 120.5" in usual
    assert "7,654,321 queued" in usual
    assert "errors: 9,999 server_error, 12 timed_out" in usual
    assert "about 18 h 03 min left" in usual
    assert "next in 42.0 s (a.example, b.example)" in usual
    assert "gossamer status crawl-example.org-2026-01-31" in usual
    assert "10,011 errors" in narrow
    for told in (
        "64 in flight",
        "9,999 server_error",
        "a-host-with-a-long-name.example.org 9,999",
        "+2.0 MB/s",
        "slow page",
    ):
        assert told in wide


def test_a_line_of_progress_says_why_the_crawl_waits() -> None:
    line = line_of(BUSY, AT)
    assert "\n" not in line
    for told in (
        "98.7 pages/s, mean 120.5",
        "64 in flight",
        "9,999 server_error",
        "12 URLs of 2 hosts",
        "next in 42.0 s",
    ):
        assert told in line
    assert len(line) < 600, "a URL of 500 characters does not fill the line"


def test_what_does_not_fit_is_left_out_whole_and_only_the_first_piece_is_cut() -> None:
    assert fitted(["one", "two", "", "three"], 8) == "one  two"
    assert fitted(["one", "far too long", "two"], 8) == "one  two"
    assert fitted(["far too long"], 8) == "far t..."
    assert fitted(["one", ("far too long", "far")], 8) == "one  far"
    assert fitted([("far too long", "too long")], 8) == "too long"
    assert cut("日本日本日本", 8) == "日本..."


@pytest.mark.parametrize("widths", [(80, 40), (80, 30, 120), (200, 81, 80, 79, 21), (40, 200, 40)])
def test_nothing_is_left_behind_when_the_terminal_is_resized(widths: tuple[int, ...]) -> None:
    screen = Screen(widths[0])
    screen.feed("$ gossamer crawl\n")
    panel = Panel(screen.feed, lambda: (screen.columns, 24))
    for columns in widths:
        if columns != screen.columns:
            screen.resize(columns)
        panel.draw(panel_lines(BUSY, panel.width, AT))
        shown = [text for _, text in screen.rows()]
        assert shown == ["$ gossamer crawl", *panel_lines(BUSY, columns - 1, AT)]
        screen.feed(panel.above("gossamer: told"))
        assert screen.lines.pop(1) == "gossamer: told"
        screen.row -= 1
    panel.clear()
    assert screen.lines == ["$ gossamer crawl", ""]


def test_a_low_terminal_shows_as_many_lines_as_can_be_drawn_over() -> None:
    screen = Screen(80)
    panel = Panel(screen.feed, lambda: (80, 3))
    panel.draw(["1", "2", "3", "4"])
    assert screen.lines == ["1", "2"]


def test_a_terminal_that_is_resized_is_drawn_anew_at_its_new_width() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as reader, os.fdopen(theirs, "w") as terminal:

        def write(text: str) -> None:
            terminal.write(text)
            terminal.flush()
            screen.feed(reader.read(65_536).decode())

        def resize(columns: int, rows: int) -> None:
            fcntl.ioctl(terminal.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            screen.resize(columns)

        screen = Screen(80)
        panel = Panel(write, lambda: size_of(terminal))
        for columns, rows in ((80, 24), (40, 24), (200, 50), (60, 24)):
            resize(columns, rows)
            panel.draw(panel_lines(BUSY, panel.width, AT))
            assert [text for _, text in screen.rows()] == panel_lines(BUSY, columns - 1, AT)
        panel.clear()
        assert screen.lines == [""]


def wait(why: str, **more: Any) -> Wait:
    return Wait(why, **more)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (wait("paused"), "paused until `gossamer continue 'my crawl'`"),
        (wait("disk_full"), "the disk is full; make room: the crawl goes on by itself"),
        (wait("network_down", until=AT + 8), "our own network seems down; next probe in 8.0 s"),
        (wait("dns_failed", hosts=1, until=AT + 8, names=["a"]), "1 host without an address, next look-up in 8.0 s (a)"),
        (wait("refusals", hosts=2, until=AT + 8), "2 hosts asked for a pause, over in 8.0 s"),
        (wait("robots_unreachable", hosts=1, until=AT - 8), "robots.txt of 1 host out of reach, next try in 0.0 s"),
        (wait("look_ups", hosts=3), "3 names being looked up"),
        (wait("set_aside", urls=3), "3 URLs set aside as parts of traps (gossamer traps 'my crawl')"),
        (wait("delay", urls=438, hosts=1, names=["localhost"], seconds=1.0, reason="latency"),
         "438 URLs wait for the delay of localhost (1.0 s; `--delay 0` if it is yours)"),
        (wait("delay", urls=1, hosts=1, names=["a"], seconds=10.0, reason="robots"),
         "1 URL waits for the delay of a (10.0 s, by robots.txt)"),
        (wait("delay", urls=40, hosts=7, until=AT + 0.5, names=["a", "b"], seconds=1.0),
         "40 URLs wait for the delays of 7 hosts, next request in 0.5 s"),
        (wait("retries", urls=1_000, hosts=9, is_more=True, until=AT), "retries of more than 1,000 URLs of 9 hosts, next in 0.0 s"),
    ],
    ids=lambda given: given.why if isinstance(given, Wait) else "",
)  # fmt: skip
def test_each_reason_is_told_with_what_it_waits_for(given: Wait, told: str) -> None:
    assert shown_wait(given, AT, "my crawl") == told
