"""A crawl that is killed again and again loses nothing, fetches little twice, and agrees with itself at the end."""

from pathlib import Path

import pytest

from tools.killing import loop


#: Fifty kills take a minute and a half; `./gossamer dev kill-loop` runs as many as asked for.
@pytest.mark.parametrize(
    "kills", [4, pytest.param(12, marks=pytest.mark.long), pytest.param(50, marks=pytest.mark.long)]
)
def test_a_crawl_survives_kills_at_any_moment(kills: int, tmp_path: Path) -> None:
    told = loop.run(tmp_path, print, kills=kills, seed=7, concurrency=16, pages=100 * kills)
    assert told.wrong == []
    assert told.figures["kills"] >= kills
    assert told.figures["refetched_most"] <= 16
    assert told.figures["rows"] > 0
