"""A runtime that is killed again and again while crawlers are at it: home gets what a clean run brings, and nothing twice.

The site is a folder of pages that compress badly, so that each crawler makes several batches. Home sends one crawler after the
other, and asks for its batches over TLS; some of its calls it breaks off itself. Meanwhile the runtime is killed and started
again at moments that follow from a seed.
"""

from __future__ import annotations

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

from gossamer.engine import processes
from gossamer.mobile.contract import RuntimeUnavailable
from gossamer.mobile.crawler import BringRules, CrawlerBatch, MobileCrawler, MobileProgram
from gossamer.mobile.manager.remote_runtime import RemoteRuntime
from gossamer.mobile.running import run_crawler
from gossamer.mobile.runtime.senders import Senders
from gossamer.mobile.sources.opened import Runtime
from gossamer.mobile.sources.owner import OwnerSheet
from gossamer.mobile.wire import to_bytes, unpacked

#: Pages, and bytes of each: some four batches.
PAGES, LENGTH = 500, 60_000

#: Seconds that a life lasts at least, from the moment when it listens; and at most, in times that a crawler takes when nobody
#: kills anything. Most lives are then too short for a whole crawler, and few crawlers meet twenty of these in a row.
SHORTEST, LONGEST = 0.05, 2.0

#: Of home's calls, the share that it breaks off, and after how many seconds at most.
_BROKEN, _BREAK = 0.2, 0.3

#: Seconds for one crawler, on a machine that has much else to do.
_PATIENCE = 600.0

_SITE = "http://site.test"
_SENDER = "home"

Answer = TypeVar("Answer")


class RuntimeKills(msgspec.Struct):
    """How it went."""

    kills: int = 0
    crawlers: int = 0
    batches: int = 0
    broken: int = 0
    """Calls that home broke off."""
    failed: int = 0
    """Calls that a kill broke off."""
    wrong: list[str] = []

    @property
    def holds(self) -> bool:
        """Every crawler brought what a clean run brings, in the same batches."""
        return not self.wrong


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
    for number in range(PAGES):
        links = "".join(f'<a href="{number * 2 + step}.html">x</a>' for step in (1, 2) if number * 2 + step < PAGES)
        name = "index.html" if number == 0 else f"{number}.html"
        prose = "<p>p7</p>" if number % 50 == 7 else ""
        (root / name).write_text(f"<title>{number}</title>{links}{prose}<!-- {dice.randbytes(LENGTH // 2).hex()} -->")
    return OwnerSheet({"site.test": str(root)})


def run(kills: int, folder: Path, seed: int = 1) -> RuntimeKills:
    """Kill a runtime so often while home sends crawlers to it, and compare.

    Args:
        kills: how often.
        folder: an empty folder.
        seed: of the moments.
    """
    sheet = make_site(folder / "site")
    clean = [_summed(batches) for batches in _clean(sheet)]
    state = folder / "state"
    state.mkdir(mode=0o700)
    key = Senders(state).admit(_SENDER)
    told = RuntimeKills()
    asyncio.run(_campaign(_Lives(sheet, state, random.Random(seed)), key, clean, kills, told))
    return told


def _clean(sheet: OwnerSheet) -> list[list[CrawlerBatch]]:
    with Runtime(sheet) as sources:
        return [list(run_crawler(crawler, sources.pages())) for crawler in crawlers()]


def _summed(batches: list[CrawlerBatch]) -> list[bytes]:
    """Batches as bytes that can be compared: the time that a crawler took is its own."""
    found = []
    for batch in batches:
        summary = batch.summary and msgspec.structs.replace(batch.summary, seconds=0.0)
        found.append(msgspec.msgpack.encode(msgspec.structs.replace(batch, summary=summary)))
    return found


class _Lives:
    """The lives of one runtime."""

    def __init__(self, sheet: OwnerSheet, state: Path, dice: random.Random) -> None:
        self.dice = dice
        (host, place), *_ = sheet.serve.items()
        self._arguments = ["--serve", f"{host}={place}", "--state", str(state), "--tls"]
        self._address = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None
        self.url = self.pin = ""

    def begin(self) -> None:
        """Start it, and wait until it listens."""
        command = processes.command("gossamer", "runtime", *self._arguments, "--listen", self._address)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=processes.environment(), text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[-1]
        self.pin = self._process.stdout.readline().split()[-1]
        self._address = self.url.removeprefix("https://")

    def end(self, number: signal.Signals) -> None:
        """End it by this signal."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


async def _campaign(lives: _Lives, key: str, clean: list[list[bytes]], kills: int, told: RuntimeKills) -> None:
    await asyncio.to_thread(lives.begin)
    link = RemoteRuntime(lives.url, key, lives.pin)
    began = time.monotonic()
    await _Home(link, random.Random(0), RuntimeKills()).brought("undisturbed", to_bytes(crawlers()[0]))
    killing = asyncio.create_task(_killed(lives, kills, LONGEST * (time.monotonic() - began), told))
    try:
        while not killing.done() or told.crawlers % len(clean):
            kind = told.crawlers % len(clean)
            identity = f"crawler-{told.crawlers}"
            async with asyncio.timeout(_PATIENCE):
                found = await _Home(link, lives.dice, told).brought(identity, to_bytes(crawlers()[kind]))
            told.crawlers += 1
            told.batches += len(found)
            if _summed(found) != clean[kind]:
                told.wrong.append(f"{identity}: {len(found)} batches differ from the {len(clean[kind])} of a clean run")
        await killing
    except TimeoutError:
        told.wrong.append(f"crawler-{told.crawlers} did not come home within {_PATIENCE:g} s")
        killing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await killing
    finally:
        await link.close()
        await asyncio.to_thread(lives.end, signal.SIGTERM)


async def _killed(lives: _Lives, kills: int, longest: float, told: RuntimeKills) -> None:
    for _ in range(kills):
        await asyncio.sleep(lives.dice.uniform(SHORTEST, longest))
        await asyncio.to_thread(lives.end, signal.SIGKILL)
        told.kills += 1
        await asyncio.to_thread(lives.begin)


class _Home:
    """The other end of the link: says everything again until it is answered."""

    def __init__(self, link: RemoteRuntime, dice: random.Random, told: RuntimeKills) -> None:
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
                self._told.broken += 1
            except RuntimeUnavailable:
                self._told.failed += 1
                await asyncio.sleep(0.05)
