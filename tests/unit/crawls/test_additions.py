"""Any number of components see every record; none takes it from another."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.builder import with_subscriber
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import NoSettings, build
from gossamer.storage.commit.commit_stage import Tally
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.visit import Record


def test_several_subscribers_see_every_record(tmp_path: Path) -> None:
    seen: dict[str, list[str]] = {"first": [], "second": []}
    known = catalog()
    for name, urls in seen.items():
        known.add(name, _subscriber(urls))
    with FakeWeb.tree(2, 3) as web:
        options = build(all_options(), {"output": str(tmp_path / "crawl"), "delay": 0, "per_host": 4})
        job = Crawl([web.url("/")], options, catalog=known, tables=False, subscribers=list(seen))
        assert asyncio.run(job.run()).state == "finished"
        expected = sorted(web.url(path) for path in web.expected)
    assert sorted(seen["first"]) == sorted(seen["second"]) == expected
    [tally] = [one.component for one in job.graph_at_work.runners.values() if isinstance(one.component, Tally)]
    assert tally.metrics.counters["type:text/html"] == len(expected)


def test_the_wiring_that_is_kept_has_no_subscriber_of_a_program(tmp_path: Path) -> None:
    known = catalog()
    known.add("mine", _subscriber([]))
    with FakeWeb.tree(1, 2) as web:
        options = build(all_options(), {"output": str(tmp_path / "crawl"), "delay": 0})
        asyncio.run(Crawl([web.url("/")], options, catalog=known, tables=False, subscribers=["mine"]).run())
        again = build(all_options(), {"output": str(tmp_path / "crawl"), "resume": True})
        assert "mine" not in Crawl([], again, tables=False).graph.components


def _subscriber(urls: list[str]) -> type[Consumer[NoSettings]]:
    class Subscriber(Consumer[NoSettings]):
        """Notes what it sees."""

        records: In[Record]

        def consume(self, record: Record) -> None:
            if record.visit.is_page:
                urls.append(record.visit.url)

    return Subscriber


def test_a_name_that_is_taken_is_refused() -> None:
    wiring: Any = with_subscriber(shipped("default"), "one", "tally")
    with pytest.raises(WiringError, match="one"):
        with_subscriber(wiring, "one", "tally")
