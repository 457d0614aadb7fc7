"""A disk that is full makes a crawl wait, and so does memory above its limit; nothing is doubled or lost by it (faults 68, 104)."""

import errno
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from warcio.archiveiterator import ArchiveIterator

from gossamer.crawls.catalog import catalog
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.frontier.traps.watch import LearntTraps
from gossamer.storage.archive.warc import WarcArchive
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.settings import LEAST_MEMORY
from gossamer.values.visit import Location, Visit


class FullOnce(WarcArchive):
    """Writes its third group, and then finds that there was no room for what belongs to it."""

    groups = 0

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        locations = super().append(visits)
        self.groups += 1
        if self.groups == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return locations


class Witness(LearntTraps):
    """Remembers what it was shown."""

    shown: ClassVar[Counter[str]] = Counter()

    def observe(self, visit: Visit) -> str:
        self.shown[visit.url] += 1
        return super().observe(visit)


def test_a_full_disk_makes_the_crawl_wait_and_nothing_is_lost(tmp_path: Path) -> None:
    known = catalog()
    known.add("warc", FullOnce)
    known.add("traps", Witness)
    Witness.shown.clear()
    told: list[str] = []
    with FakeWeb.tree(3, 4) as web:
        options = build(all_options(), {"output": str(tmp_path / "c"), "delay": 0, "per_host": 4})
        summary = run(
            Crawl([web.url("/")], options, catalog=known, report=told.append, settings={"commit": {"disk_wait": 0.01}})
        )
        assert Counter(map(web.url, web.targets())) == Counter(web.expected)
    assert (summary.state, summary.pages) == ("finished", len(web.expected))
    assert [line.partition(" (")[0] for line in told] == [
        "the disk is full",
        "there is room on the disk again; the crawl goes on",
    ]
    assert {Witness.shown[url] for url in web.expected} == {1}, "a group that is written again teaches nobody twice"
    archived: Counter[str] = Counter()
    for file in (tmp_path / "c" / "warc").glob("*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                archived[record.rec_headers.get_header("WARC-Target-URI") or ""] += record.rec_type == "response"
    assert {url: count for url, count in archived.items() if url in web.expected} == dict.fromkeys(web.expected, 1)


def test_a_crawl_above_its_memory_asks_for_one_page_at_a_time_and_fetches_all(tmp_path: Path) -> None:
    told: list[str] = []
    held = b"x" * LEAST_MEMORY  # with it, this process is above the limit
    with FakeWeb.tree(3, 3) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "per_host": 4, "memory": len(held)}
        summary = run(Crawl([web.url("/")], build(all_options(), options), report=told.append))
        assert Counter(map(web.url, web.targets())) == Counter(web.expected)
    assert (summary.state, summary.pages) == ("finished", len(web.expected))
    (line,) = told
    assert line.endswith(" of the 200.0 MB that --memory allows: one page is asked for at a time until they use less")
