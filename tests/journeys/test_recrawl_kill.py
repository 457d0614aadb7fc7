"""A crawl that comes back to its pages and is killed: no page comes before its time, and none is forgotten."""

from pathlib import Path

import pytest

from tools.killing import spiders as recrawls


@pytest.mark.long
def test_no_page_comes_too_soon_and_none_is_forgotten_when_the_crawl_is_killed(tmp_path: Path) -> None:
    told = recrawls.come_back(tmp_path, print, kills=6, seed=5)
    assert told.wrong == []
    assert told.figures["requests"] > 2 * recrawls.PAGES
