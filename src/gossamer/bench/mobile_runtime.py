"""The same pages through a runtime: read from files behind the owner's gate, judged in a process that is shut in, packed.

Place in the flow: `gossamer bench mobile` shows this table below that of the runner alone. A page costs the processor time of both
processes, the runtime's and the crawler's; starting a crawler's process is told apart.
"""

import gc
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from gossamer.bench.report import BenchReport
from gossamer.mobile.confined.keeper import CrawlerKeeper, MadeBatch, ProcessLimits, walls_here
from gossamer.mobile.crawler import MobileCrawler, MobileProgram, TravelLimits
from gossamer.mobile.sources.crawl import Runtime
from gossamer.mobile.sources.owner import OwnerSheet
from gossamer.mobile.wire import to_bytes
from gossamer.values.errors import UsageError


class RuntimeCost(msgspec.Struct, frozen=True):
    """What one journey cost, in seconds of processor time."""

    runtime: float
    crawler: float
    """With the start of its process."""
    sent: int
    """Bytes of frames."""

    @property
    def seconds(self) -> float:
        return self.runtime + self.crawler


def add_runtime(
    report: BenchReport, site: Mapping[str, bytes], host: str, rows: Mapping[str, Mapping[str, Any]], repeats: int
) -> None:
    """Measure, several times, and take the cheapest of each row.

    Args:
        report: gets a table.
        site: path -> page.
        host: of the URLs.
        rows: name -> what the program has.
        repeats: of each row.
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        _written(root, site)
        urls = tuple(f"http://{host}{path}" for path in site)
        start = min(_cost(root, host, urls[:1], {}).seconds for _ in range(repeats))
        title = (
            f"The same pages as files, through a runtime ({walls_here(ProcessLimits())}); beside them, "
            f"{start:.2f} s of processor time for each crawler to start"
        )
        table = report.table(title, "judged by", "pages/s", "us a page", "of these in the runtime", "bytes home")
        for row, program in rows.items():
            cost = min((_cost(root, host, urls, program) for _ in range(repeats)), key=lambda one: one.seconds)
            page = (cost.seconds - start) / len(site)
            cells = (f"{1 / page:,.0f}", f"{page * 1e6:.0f}", f"{cost.runtime / len(site) * 1e6:.0f}", f"{cost.sent:,}")
            table.add(row, *cells)


def _written(root: Path, site: Mapping[str, bytes]) -> None:
    for path, page in site.items():
        file = root / unquote(path[1:])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(page)


def _cost(root: Path, host: str, urls: Sequence[str], program: Mapping[str, Any]) -> RuntimeCost:
    # All pages are seeds, and nothing else is visited: each is judged once whatever leads to it.
    limits = TravelLimits(urls=len(urls))
    crawler = MobileCrawler(MobileProgram(seeds=tuple(urls), limits=limits, **program))
    made: list[MadeBatch] = []
    with Runtime(OwnerSheet({host: str(root)})) as sources:
        gc.collect()
        began = time.process_time()
        end = CrawlerKeeper(to_bytes(crawler), ProcessLimits(is_weak=True)).run(sources.pages(), made.append)
        spent = time.process_time() - began
    if end.reason:
        raise UsageError(f"the crawler was ended: {end.reason} ({end.told})")
    return RuntimeCost(spent, end.cpu, sum(len(one.frame) for one in made))
