"""Whatever signal comes at whatever moment, and whether somebody reads or not: a crawl ends well, and says how."""

from pathlib import Path

import pytest

from tools.killing import steered


@pytest.mark.long
@pytest.mark.parametrize("times", [5, 40])
def test_signals_at_random_moments_leave_every_state_consistent_and_every_status_documented(
    times: int, tmp_path: Path
) -> None:
    told = steered.disturb(tmp_path, print, times=times, seed=5)
    assert told.wrong == []
    assert told.figures["runs"] == times
    assert len(told.figures["by_way"]) > 2
