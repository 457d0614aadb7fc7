"""The lines that a run tells: which of them are noted, and said once more at the end."""

from pathlib import Path

from gossamer.crawls.work import WARNINGS, RunLines


def test_lines_of_a_run_at_work_are_said_once_more_and_all_others_once(tmp_path: Path) -> None:
    told: list[str] = []
    is_working = False
    lines = RunLines(tmp_path, told.append, lambda: is_working)
    (tmp_path / "logs").mkdir()
    lines.tell("it begins")
    is_working = True
    for number in range(WARNINGS + 1):
        lines.tell(f"line {number}")
    is_working = False
    lines.tell("it has ended")
    assert told == ["it begins", *(f"line {number}" for number in range(WARNINGS + 1)), "it has ended"]
    assert list(lines.warnings) == [f"line {number}" for number in range(1, WARNINGS + 1)], "the latest"
