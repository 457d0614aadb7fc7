"""Crawls of several agents that people steer at random moments end with every page, once."""

from pathlib import Path

import pytest

from tools.killing import steered


@pytest.mark.long
def test_a_crawl_that_is_stopped_resumed_and_loses_agents_has_every_page_once(tmp_path: Path) -> None:
    told = steered.run(tmp_path, print, crawls=1, seed=2)
    assert told.wrong == []
    assert told.figures["stop"] == 1
