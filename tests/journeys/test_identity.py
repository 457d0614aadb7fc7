"""Visits and crawls have an identity: no two visits share an id, and a crawl keeps its own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.storage.members import crawl_id
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.instants import VisitIds


def crawled(directory: Path, seed: str, **options: Any) -> None:
    chosen = build(all_options(), {"output": str(directory), "delay": 0, "per_host": 4, **options})
    asyncio.run(Crawl([] if options.get("resume") else [seed], chosen).run())


def test_runs_never_give_the_same_id_at_the_same_time() -> None:
    runs = [VisitIds(1_700_000_000.0) for _ in range(50)]
    assert len({run.next() for run in runs for _ in range(50)}) == 2_500


def test_every_visit_of_a_crawl_has_an_id_of_its_own(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 4) as web:
        crawled(tmp_path / "crawl", web.url("/"), max_pages=5)
        crawled(tmp_path / "crawl", web.url("/"), resume=True, max_pages=12)
    with Database(tmp_path / "crawl") as database:
        [(visits, ids, runs)] = database.ask(
            "SELECT count(*), count(DISTINCT visit), count(DISTINCT split_part(visit, '-', 1)) FROM pages_all"
        )
        assert visits == ids > 5
        assert runs == 2
        unknown = "SELECT count(*) FROM links_all WHERE visit NOT IN (SELECT visit FROM pages_all)"
        assert list(database.ask(unknown)) == [(0,)]


def test_a_crawl_keeps_its_id_when_it_goes_on_and_another_has_another(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        crawled(tmp_path / "one", web.url("/"), max_pages=1)
        first = crawl_id(tmp_path / "one")
        crawled(tmp_path / "one", web.url("/"), resume=True)
        crawled(tmp_path / "two", web.url("/"))
    assert first
    assert crawl_id(tmp_path / "one") == first
    assert crawl_id(tmp_path / "two") not in {"", first}
    with Database(tmp_path / "one") as database:
        assert list(database.ask("SELECT id FROM crawls")) == [(first,)]


@pytest.mark.parametrize("has_id", [True, False])
def test_a_crawl_of_an_older_program_gets_an_id_when_it_goes_on(tmp_path: Path, has_id: bool) -> None:
    with FakeWeb.tree(1, 2) as web:
        crawled(tmp_path / "one", web.url("/"), max_pages=1)
        if not has_id:
            (tmp_path / "one/state/crawl-id").unlink()
        before = crawl_id(tmp_path / "one")
        crawled(tmp_path / "one", web.url("/"), resume=True)
    assert bool(before) is has_id
    assert crawl_id(tmp_path / "one") and before in ("", crawl_id(tmp_path / "one"))
