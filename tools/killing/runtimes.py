"""Runtimes that are killed again and again while crawlers are at it: nothing is lost, and nothing comes twice.

*kill-runtimes*: home gets what a clean run brings. The site is a folder of pages that compress badly, so that each crawler makes
several batches. Home sends one crawler after the other, and asks for its batches over TLS; some of its calls it breaks off itself.
Meanwhile the runtime is killed and started again at moments that follow from a seed.

*kill-mobile*: now a crawl that sends crawlers is killed, now the runtime, now the line between them breaks off, at any moment of a
journey. The runtime serves a folder of made pages, some of them relevant. Archive and tables of each crawl that comes to its end
are compared with the folder; then another one begins.
"""

import asyncio
import contextlib
import random
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from gossamer.mobile.contract import RuntimeUnavailable
from gossamer.mobile.crawler import BringRules, CrawlerBatch, MobileCrawler, MobileProgram
from gossamer.mobile.manager.links import RemoteRuntime
from gossamer.mobile.running import run_crawler
from gossamer.mobile.sources.opened import Runtime
from gossamer.mobile.sources.owner import OwnerSheet
from gossamer.mobile.wire import to_bytes, unpacked
from gossamer.query.archive import ArchiveReader
from gossamer.query.database import Database
from gossamer.values.body import pieces
from tools.bench.mobile import made_pages
from tools.bench.traffic import SHARES, RuntimeProcess, SlowLine, write_site
from tools.killing import Say, Told
from tools.killing.site import begun, judge_last, unlike

#: Pages, and bytes of each: some four batches.
SITE_PAGES, LENGTH = 500, 60_000

#: Seconds that a life lasts at least, from the moment when it listens; and at most, in times that a crawler takes when nothing
#: kills anything. Most lives are then too short for a whole crawler, and few crawlers meet twenty of these in a row.
SHORTEST, LONGEST_LIFE = 0.05, 2.0

#: Of home's calls, the share that it breaks off, and after how many seconds at most.
_BROKEN, _BREAK = 0.2, 0.3

#: Seconds for one crawler, on a machine that has much else to do.
_PATIENCE = 600.0

_SITE = "http://site.test"

Answer = TypeVar("Answer")


def crawlers() -> list[MobileCrawler]:
    """Those that travel, one after the other and then again: all pages whole, some, and none."""
    seeds = (f"{_SITE}/",)
    return [
        MobileCrawler(MobileProgram(seeds)),
        MobileCrawler(MobileProgram(seeds, store="text(p7)", bring=BringRules(("text", "links"), irrelevant="rows"))),
        MobileCrawler(MobileProgram(seeds, store="text(nowhere)")),
    ]


def make_site(root: Path) -> OwnerSheet:
    """The folder of pages, and a sheet that serves it."""
    dice = random.Random(0)
    root.mkdir()
    for number in range(SITE_PAGES):
        links = "".join(
            f'<a href="{number * 2 + step}.html">x</a>' for step in (1, 2) if number * 2 + step < SITE_PAGES
        )
        name = "index.html" if number == 0 else f"{number}.html"
        prose = "<p>p7</p>" if number % 50 == 7 else ""
        (root / name).write_text(f"<title>{number}</title>{links}{prose}<!-- {dice.randbytes(LENGTH // 2).hex()} -->")
    return OwnerSheet({"site.test": str(root)})


def run(folder: Path, say: Say, *, kills: int = 30, seed: int = 1) -> Told:
    """Kill a runtime so often while home sends crawlers to it, and compare."""
    sheet, told = make_site(folder / "site"), Told()
    with Runtime(sheet) as sources:
        clean = [_summed(list(run_crawler(crawler, sources.pages()))) for crawler in crawlers()]
    state = folder / "state"
    state.mkdir(mode=0o700)
    [(host, place)] = sheet.serve.items()
    asyncio.run(_campaign(RuntimeProcess(host, Path(place), state, "--tls"), random.Random(seed), clean, kills, told))
    return told


def _summed(batches: list[CrawlerBatch]) -> list[bytes]:
    """Batches as bytes that can be compared: the time that a crawler took is its own."""
    found = []
    for batch in batches:
        summary = batch.summary and msgspec.structs.replace(batch.summary, seconds=0.0)
        found.append(msgspec.msgpack.encode(msgspec.structs.replace(batch, summary=summary)))
    return found


async def _campaign(
    runtime: RuntimeProcess, dice: random.Random, clean: list[list[bytes]], kills: int, told: Told
) -> None:
    await asyncio.to_thread(runtime.begin)
    link = RemoteRuntime(runtime.url, runtime.key, runtime.pin)
    began = time.monotonic()
    await _Home(link, random.Random(0), Told()).brought("undisturbed", to_bytes(crawlers()[0]))
    longest = LONGEST_LIFE * (time.monotonic() - began)

    async def kill() -> None:
        for _ in range(kills):
            await asyncio.sleep(dice.uniform(SHORTEST, longest))
            await asyncio.to_thread(runtime.end, signal.SIGKILL)
            told.figures["kills"] += 1
            await asyncio.to_thread(runtime.begin)

    killing = asyncio.create_task(kill())
    number = 0
    try:
        while not killing.done() or number % len(clean):
            kind = number % len(clean)
            async with asyncio.timeout(_PATIENCE):
                found = await _Home(link, dice, told).brought(f"crawler-{number}", to_bytes(crawlers()[kind]))
            told.figures["batches"] += len(found)
            if _summed(found) != clean[kind]:
                told.wrong.append(
                    f"crawler-{number}: {len(found)} batches differ from the {len(clean[kind])} of a clean run"
                )
            number += 1
        await killing
    except TimeoutError:
        told.wrong.append(f"crawler-{number} did not come home within {_PATIENCE:g} s")
        killing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await killing
    finally:
        told.figures["crawlers"] = number
        await link.close()
        await asyncio.to_thread(runtime.end)


class _Home:
    """The other end of the link: says everything again until it is answered."""

    def __init__(self, link: RemoteRuntime, dice: random.Random, told: Told) -> None:
        self._link = link
        self._dice = dice
        self._told = told

    async def brought(self, identity: str, crawler: bytes) -> list[CrawlerBatch]:
        """All that a crawler brings."""
        await self._insisted(lambda: self._link.send(identity, crawler))
        found: list[CrawlerBatch] = []
        while True:
            frame = await self._insisted(lambda: self._link.batch(identity, len(found), 5.0))
            if isinstance(frame, bytes):
                found.append(unpacked(frame, CrawlerBatch))
                await self._insisted(lambda: self._link.acknowledge(identity, len(found) - 1))
            elif frame.has_ended:
                if frame.state != "finished" or frame.batches != len(found):
                    self._told.wrong.append(f"{identity}: {frame.state} {frame.reason} {frame.told}")
                return found

    async def _insisted(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        while True:
            patience = self._dice.uniform(0.0, _BREAK) if self._dice.random() < _BROKEN else 60.0
            try:
                async with asyncio.timeout(patience):
                    return await call()
            except TimeoutError:
                self._told.figures["broken_off_by_home"] += 1
            except RuntimeUnavailable:
                self._told.figures["broken_off_by_kills"] += 1
                await asyncio.sleep(0.05)


#: Pages of the site: several batches of 8 MB.
PAGES = 700

#: Which of them are relevant, in per cent.
SHARE = 50

#: Seconds after the begin of a life within which something is killed.
LONGEST = 6.0

_HOST = "www.kills.example"


def run_crawls(folder: Path, say: Say, *, kills: int = 30, seed: int = 1) -> Told:
    """Crawl the site, killing crawl, runtime or line so often, and compare what it has with the folder, which is empty at first."""
    chance, told, root = random.Random(seed), Told(), folder / "site"
    folder.chmod(0o755)
    root.mkdir()
    write_site(made_pages(PAGES), root)
    runtime = RuntimeProcess(_HOST, root, folder / "runtime", "--weak-isolation")
    runtime.begin()
    try:
        with SlowLine(runtime.port, 0.02, 3e6) as line:

            def started(number: int) -> subprocess.Popen[bytes]:
                given = ["--mobile", "--runtime", f"{_HOST}=http://127.0.0.1:{line.port}"]
                given += ["--filter", f"store: text({SHARES[SHARE]})", "--traps", "report"]
                first = ["crawl", f"http://{_HOST}/all.html", *given, "--contact", "kills@example.org"]
                return begun(folder / f"crawl-{number}", first, environment={"GOSSAMER_RUNTIME_KEY": runtime.key})

            number = 0
            crawl = started(number)
            while told.figures["kills"] < kills:
                time.sleep(chance.uniform(0.2, LONGEST))
                if crawl.poll() is not None:
                    # It came to its end alive: another one begins.
                    _judge(told, crawl, folder / f"crawl-{number}", root)
                    number += 1
                    crawl = started(number)
                    continue
                victim = chance.choice(("crawl", "crawl", "runtime", "line"))
                if victim == "runtime":
                    runtime.end(signal.SIGKILL)
                    runtime.begin()
                elif victim == "line":
                    line.cut()
                else:
                    crawl.kill()
                    crawl.communicate()
                    crawl = started(number)
                told.figures["kills"] += 1
                told.figures[f"of_{victim}"] += 1
            _judge(told, crawl, folder / f"crawl-{number}", root)
    finally:
        runtime.end(signal.SIGKILL)
    return told


def _judge(told: Told, crawl: subprocess.Popen[bytes], directory: Path, root: Path) -> None:
    """The crawl has at its end the relevant pages of the folder, each once."""
    judge_last(told, crawl)
    pages = {f"http://{_HOST}/{file.relative_to(root).as_posix()}": file.read_bytes() for file in root.rglob("*.html")}
    wanted = {url: page for url, page in pages.items() if SHARES[SHARE].encode() in page}
    reader = ArchiveReader(directory)
    with Database(directory) as database:
        rows = [str(url) for (url,) in database.ask("SELECT url FROM pages_all WHERE outcome = 'ok'")]
    found = set(rows)
    told.figures["crawls"] += 1
    told.figures["documents"] += len(rows)
    told.wrong += unlike(rows, wanted.keys())
    told.wrong += [f"{url} is not relevant" for url in sorted(found - wanted.keys())]
    for url in sorted(found & wanted.keys()):
        if b"".join(pieces(reader.document(url).source.body)) != wanted[url]:
            told.wrong.append(f"{url} has other bytes")
