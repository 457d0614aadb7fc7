"""The cost of rendering a page: one of a megabyte with thirty requisites, answered from memory, in a tab that is kept for
its host and in a new one for each page; and one that waits for ten seconds of its own time. Besides, the memory of a pool of four
places over thousands of pages.

Times of processors are those of this process and of all processes of the browser.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from gossamer.bench.harness import BenchReport, FigureTable, pages_option
from gossamer.browser.chromium import program
from gossamer.browser.rendering import FetchedPage, Want, WantedAnswer
from gossamer.browser.tabs import Tabs
from gossamer.engine import processes

#: Requisites of the page: scripts, style sheets and pictures, with their bytes.
SCRIPTS, SHEETS, PICTURES = 5, 2, 23
SCRIPT, SHEET, PICTURE = 70_000, 30_000, 20_000

#: Paragraphs of its own markup.
PARAGRAPHS = 600

#: Pages that are rendered before anything is counted.
WARM = 3

#: Pages at once and hosts of a pool, and how often its memory is looked at.
PLACES, HOSTS, LOOKS = 4, 40, 10

_SCRIPT = b"var list = []; for (var i = 0; i < 2000; i++) list.push(i * i);\n"
_TICKS = os.sysconf("SC_CLK_TCK")


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
    bodies = {
        "js": ("text/javascript", _SCRIPT + b"/* text that is parsed */\n" * (SCRIPT // 26)),
        "css": ("text/css", b".paragraph { color: #333; margin: 1em }\n" * (SHEET // 40)),
        "png": ("image/png", bytes(PICTURE)),
    }
    fields = (("cache-control", "max-age=3600"),)
    return {end: WantedAnswer(200, (("content-type", kind), *fields), body) for end, (kind, body) in bodies.items()}


def _page(host: str, markup: bytes) -> FetchedPage:
    return FetchedPage(f"http://{host}/", WantedAnswer(200, (("content-type", "text/html"),), markup), 1.77e9)


@contextlib.asynccontextmanager
async def _tabs(places: int) -> AsyncIterator[Tabs]:
    tabs = Tabs(program(), places)
    try:
        yield tabs
    finally:
        await tabs.close()


async def _rendered(count: int, *, is_kept: bool) -> Sequence[str]:
    """Costs of so many pages: pages a second of a processor, ms of a processor and by the clock, wants, and MB of the browser."""
    answers, wants, began, before = _answers(), 0, 0.0, 0.0

    async def ask(want: Want) -> WantedAnswer:
        nonlocal wants
        wants += 1
        return answers[want.url.rpartition(".")[2]]

    async with _tabs(1) as tabs:
        for number in range(WARM + count):
            if number == WARM:
                wants, began, before = 0, time.perf_counter(), _processors()
            await tabs.render("h.test" if is_kept else number, _page("h.test", page(number)), ask)
        wall, spent = time.perf_counter() - began, _processors() - before
        each = (1_000 * spent / count, 1_000 * wall / count, wants / count, _memory() / 1e6)
        return f"{count / spent:.1f}", *(f"{figure:.0f}" for figure in each)


async def _waiting() -> float:
    """Seconds that a page takes which changes after ten seconds of its own."""
    body = b"<title>0</title><script>setTimeout(() => { document.title = 'late' }, 9900)</script>"

    async def ask(want: Want) -> WantedAnswer:
        return WantedAnswer(404, (), b"")

    async with _tabs(1) as tabs:
        began = 0.0
        for _ in range(2):
            began = time.perf_counter()
            shown = await tabs.render("h.test", _page("h.test", body), ask)
            assert "late" in shown.markup
        return time.perf_counter() - began


def _processes() -> list[Path]:
    """This process and all that it has begun, and so on."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents.setdefault(int(_fields(path)[1]), []).append(int(path.name))
    todo, found = [os.getpid()], []
    while todo:
        one = todo.pop()
        found.append(Path(f"/proc/{one}"))
        todo += parents.get(one, [])
    return found


def _fields(path: Path) -> list[str]:
    return (path / "stat").read_text().rpartition(")")[2].split()


def _processors() -> float:
    """Seconds of processors of all these processes, and of those of theirs that have ended."""
    total = 0
    for path in _processes():
        with contextlib.suppress(OSError):  # it has just ended
            total += sum(map(int, _fields(path)[11:15]))
    return total / _TICKS


def _memory() -> int:
    """Bytes of the browser's processes that they share with no file."""
    total = 0
    for path in _processes()[1:]:
        with contextlib.suppress(OSError):
            _, own, shared = map(int, (path / "statm").read_text().split()[:3])
            total += (own - shared) * os.sysconf("SC_PAGE_SIZE")
    return total


@pages_option(100)
def run(pages: int) -> BenchReport:
    """Render pages of a megabyte, in a tab that is kept and in new ones."""
    report = BenchReport("rendering")
    table = report.table(
        f"{pages} pages of a megabyte with {SCRIPTS + SHEETS + PICTURES} requisites",
        *("tab", "pages a second of a processor", "ms of a processor a page", "ms a page", "wants a page"),
        "memory of the browser, MB",
    )
    for name, is_kept in (("kept for the host", True), ("new for each page", False)):
        table.add(name, *asyncio.run(_rendered(pages, is_kept=is_kept)))
    waiting = report.table("A page that changes after 9.9 seconds of its own time", "seconds")
    waiting.add(f"{asyncio.run(_waiting()):.2f}")
    return report


async def _pool(pages: int, table: FigureTable) -> None:
    """Render so many pages in a pool, and look at its memory."""
    answers, before, numbers = _answers(), processes.resident(), iter(range(pages))

    async def ask(want: Want) -> WantedAnswer:
        return answers[want.url.rpartition(".")[2]]

    async def worker() -> None:
        for number in numbers:
            host = f"h{number % HOSTS}.test"
            await tabs.render(host, _page(host, page(number)), ask)
            if (number + 1) % (pages // LOOKS) == 0:
                more = (processes.resident() - before) / 1e6
                table.add(number + 1, f"{_memory() / 1e6:.0f}", f"{more:+.0f}", tabs.started)

    async with _tabs(PLACES) as tabs:
        await asyncio.gather(*(worker() for _ in range(2 * PLACES)))


@pages_option(5_000)
def pool(pages: int) -> BenchReport:
    """Memory of a pool of four places as it goes on."""
    report = BenchReport("render-pool")
    table = report.table(
        f"{pages} pages of {HOSTS} hosts at {PLACES} places",
        *("pages", "memory of the browser, MB", "of the agent, MB", "browsers started"),
    )
    asyncio.run(_pool(pages, table))
    return report
