"""Whatever signal comes at whatever moment, and whether somebody reads or not: a crawl ends well, and says how."""

from pathlib import Path

from tools import signalling


def test_signals_at_random_moments_leave_every_state_consistent_and_every_status_documented(tmp_path: Path) -> None:
    report = signalling.run(12, seed=5, folder=tmp_path)
    assert report.findings == []
    assert report.runs == 12
    assert len(report.by_way) > 3
