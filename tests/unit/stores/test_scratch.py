"""Folders for what lies between go with their process, and with the next one where that was killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.stores.scratch import PREFIX, scratch, sweep

#: A process that makes a folder and dies in it.
_DYING = "import os; from gossamer.stores.scratch import scratch; held = scratch(); held.__enter__(); os._exit(9)"


def test_a_folder_goes_with_its_block() -> None:
    with scratch() as folder:
        assert Path(folder).is_dir()
    assert not Path(folder).exists()


def test_folders_of_processes_that_died_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert subprocess.run([sys.executable, "-c", _DYING]).returncode == 9
    [left] = tmp_path.glob(f"{PREFIX}*")
    foreign = tmp_path / f"{PREFIX}0"
    foreign.mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "theirs")
    living = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from gossamer.stores.scratch import scratch\nwith scratch(): print(1, flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert living.stdout is not None
    living.stdout.readline()
    held = {path for path in tmp_path.iterdir() if path not in (left, foreign)}
    sweep(tmp_path)
    assert set(tmp_path.iterdir()) == held | {foreign}
    living.communicate(b"\n")
    assert len(held) == 3
