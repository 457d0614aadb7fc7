"""Folders for what lies between go with their process, and with the next one where that was killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.engine.files import PREFIX, joined, scratch, sweep

#: A process that makes a folder and dies in it.
_DYING = "import os; from gossamer.engine.files import scratch; held = scratch(); held.__enter__(); os._exit(9)"


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
            "from gossamer.engine.files import scratch\nwith scratch(): print(1, flush=True); input()",
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


def test_a_shared_folder_stays_while_anybody_holds_it_and_the_last_one_removes_it(tmp_path: Path) -> None:
    with scratch(place=tmp_path, shared=True) as name:
        folder = Path(name)
        sweep(tmp_path)
        assert folder.is_dir()
        other = joined(folder)
        assert other.__enter__() == folder
    sweep(tmp_path)
    assert folder.is_dir(), "somebody else holds it"
    other.__exit__(None, None, None)
    assert not folder.exists()
    with joined(folder) as gone:
        assert gone is None


def test_a_folder_of_one_process_cannot_be_joined(tmp_path: Path) -> None:
    with scratch(place=tmp_path) as name, joined(Path(name)) as found:
        assert found is None
