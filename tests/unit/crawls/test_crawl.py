"""A crawl that is made and not run: everything is checked, and nothing is touched."""

import datetime
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.errors import FlowError, SettingError
from gossamer.engine.sheet import NoSettings
from gossamer.values.errors import UsageError
from gossamer.values.visit import Record


class Reader(Consumer[NoSettings]):
    """A program's own subscriber."""

    records: In[Record]

    async def consume(self, record: Record) -> None:
        """Reads nothing."""


def made(folder: Path, *seeds: str, **given: Any) -> Crawl:
    return Crawl(seeds or ["http://127.0.0.1/"], CrawlOptions(output=str(folder / "crawl")), **given)


@pytest.mark.parametrize(
    ("seeds", "given", "reason"),
    [
        (["http://a.test/", "mailto:a@b.test"], {}, "names no host"),
        (["echo://a.test/"], {}, "echo"),
        ([], {"settings": {"frontir": {"max_pages": 1}}}, "frontir"),
        ([], {"settings": {"frontier": {"max_pagse": 1}}}, "max_pages"),
        ([], {"settings": {"frontier": {"max_pages": "many"}}}, "max_pages"),
        ([], {"subscribers": ["nobody"]}, "nobody"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_touched(
    tmp_path: Path, seeds: list[str], given: dict[str, Any], reason: str
) -> None:
    with pytest.raises((UsageError, FlowError), match=reason):
        made(tmp_path, *seeds, **given)
    assert list(tmp_path.iterdir()) == []


def test_a_crawl_without_seeds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to crawl"):
        Crawl([], CrawlOptions(output=str(tmp_path / "crawl")))


def test_accepting_a_loss_is_for_a_crawl_that_goes_on(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--accept-loss goes on with a crawl"):
        Crawl(["http://a.test/"], CrawlOptions(output=str(tmp_path / "crawl"), accept_loss=True))


def test_a_wrong_pattern_is_told_before_the_directory_is_judged(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(SettingError, match=r"include: '\(' is not an RE2 pattern"):
        Crawl(["http://a.test/"], CrawlOptions(output=str(tmp_path), include=("(",)))


def test_a_directory_is_named_after_the_first_seed_and_the_day() -> None:
    today = datetime.datetime.now().astimezone().date().isoformat()
    assert Crawl(["http://a.test/", "http://b.test/"]).directory == Path(f"crawl-a.test-{today}")


def test_a_programs_own_subscriber_gets_every_record_and_is_not_kept(tmp_path: Path) -> None:
    known = catalog()
    known.add("reader", Reader)
    crawl = made(tmp_path, catalog=known, subscribers=["reader"])
    assert "reader" in {plan.use for plan in crawl.wiring.components.values()}
    assert "reader" not in {plan.use for plan in crawl.kept.components.values()}
