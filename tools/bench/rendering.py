"""What it costs to render a page: one of a megabyte with thirty requisites, answered from memory, in a tab that is kept for
its host and in a new one for each page; and one that waits for ten seconds of its own time.

Times of processors are those of this process and of all processes of the browser.
"""

import asyncio
import os
import time
from pathlib import Path

import msgspec

from gossamer.bench.harness import pages_option
from gossamer.bench.report import BenchReport
from gossamer.browser.chromium import program
from gossamer.browser.rendering import FetchedPage, Want, WantedAnswer
from gossamer.browser.tabs import Tabs

#: Requisites of the page: scripts, style sheets and pictures, with their bytes.
SCRIPTS, SHEETS, PICTURES = 5, 2, 23
SCRIPT, SHEET, PICTURE = 70_000, 30_000, 20_000

#: Paragraphs of its own markup.
PARAGRAPHS = 600

#: Pages that are rendered before anything is counted.
WARM = 3

_HTML = (("content-type", "text/html"),)
_TICKS = os.sysconf("SC_CLK_TCK")


class Rendering(msgspec.Struct):
    """What so many pages took."""

    pages: int
    wall: float
    processors: float
    wants: int
    memory: int
    """Bytes of the browser's processes that they share with no file."""


def page(number: int) -> bytes:
    """The page, with the requisites of its host."""
    head = "".join(f"<script src=/s{one}.js></script>" for one in range(SCRIPTS))
    head += "".join(f"<link rel=stylesheet href=/c{one}.css>" for one in range(SHEETS))
    pictures = "".join(f"<img src=/i{number}-{one}.png>" for one in range(PICTURES))
    prose = "".join(
        f"<p class=paragraph><span>Paragraph {one} of page {number}: words and more words.</span></p>"
        for one in range(PARAGRAPHS)
    )
    return f"<!DOCTYPE html><title>Page {number}</title>{head}<body>{pictures}{prose}".encode()


def _answers() -> dict[str, WantedAnswer]:
    def given(kind: str, body: bytes) -> WantedAnswer:
        return WantedAnswer(200, (("content-type", kind), ("cache-control", "max-age=3600")), body)

    script = b"var list = []; for (var i = 0; i < 2000; i++) list.push(i * i);\n" + b"/* text that is parsed */\n" * (
        SCRIPT // 26
    )
    sheet = b".paragraph { color: #333; margin: 1em }\n" * (SHEET // 40)
    return {
        "js": given("text/javascript", script),
        "css": given("text/css", sheet),
        "png": given("image/png", bytes(PICTURE)),
    }


async def _rendered(count: int, *, is_kept: bool) -> Rendering:
    answers, wants = _answers(), 0

    async def ask(want: Want) -> WantedAnswer:
        nonlocal wants
        wants += 1
        return answers[want.url.rpartition(".")[2]]

    tabs = Tabs(program(), 1)
    try:
        for number in range(WARM + count):
            if number == WARM:
                wants, began, before = 0, time.perf_counter(), _processors()
            shown = FetchedPage("http://h.test/", WantedAnswer(200, _HTML, page(number)), 1.77e9)
            await tabs.render("h.test" if is_kept else number, shown, ask)
        return Rendering(count, time.perf_counter() - began, _processors() - before, wants, _memory())
    finally:
        await tabs.close()


async def _waiting() -> float:
    """Seconds that a page takes which changes after ten seconds of its own."""
    body = b"<title>0</title><script>setTimeout(() => { document.title = 'late' }, 9900)</script>"

    async def ask(want: Want) -> WantedAnswer:
        return WantedAnswer(404, (), b"")

    tabs = Tabs(program(), 1)
    try:
        began = 0.0
        for _ in range(2):
            began = time.perf_counter()
            shown = await tabs.render(
                "h.test", FetchedPage("http://h.test/", WantedAnswer(200, _HTML, body), 1.77e9), ask
            )
            assert "late" in shown.markup
        return time.perf_counter() - began
    finally:
        await tabs.close()


def _processes() -> list[Path]:
    """This process and all that it has begun, and so on."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents.setdefault(int(_fields(path)[1]), []).append(int(path.name))
        except OSError:
            continue
    todo, found = [os.getpid()], []
    while todo:
        one = todo.pop()
        found.append(Path(f"/proc/{one}"))
        todo += parents.get(one, [])
    return found


def _fields(path: Path) -> list[str]:
    """The fields of `stat` from the state on."""
    return (path / "stat").read_text().rpartition(")")[2].split()


def _processors() -> float:
    """Seconds of processors of all these processes, and of those of theirs that have ended."""
    return sum(sum(map(int, _fields(path)[11:15])) for path in _processes()) / _TICKS


def _memory() -> int:
    total = 0
    for path in _processes()[1:]:
        _, resident, shared = map(int, (path / "statm").read_text().split()[:3])
        total += (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return total


@pages_option(100)
def run(pages: int) -> BenchReport:
    """Render pages of a megabyte, in a tab that is kept and in new ones."""
    report = BenchReport("rendering")
    table = report.table(
        f"{pages} pages of a megabyte with {SCRIPTS + SHEETS + PICTURES} requisites",
        *("tab", "pages a second of a processor", "ms of a processor a page", "ms a page", "wants a page"),
        "memory of the browser, MB",
    )  # fmt: skip
    for name, is_kept in (("kept for the host", True), ("new for each page", False)):
        found = asyncio.run(_rendered(pages, is_kept=is_kept))
        table.add(
            name,
            f"{found.pages / found.processors:.1f}",
            f"{1000 * found.processors / found.pages:.0f}",
            f"{1000 * found.wall / found.pages:.0f}",
            f"{found.wants / found.pages:.0f}",
            f"{found.memory / 1e6:.0f}",
        )
    waiting = report.table("A page that changes after 9.9 seconds of its own time", "seconds")
    waiting.add(f"{asyncio.run(_waiting()):.2f}")
    return report
