"""Completion scripts land where shells look for them, and complete commands and options."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.cli.setup import PLACES


@pytest.mark.parametrize("shell", sorted(PLACES))
def test_the_script_of_each_shell_is_written_where_it_looks(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", shell]) == 0
    assert "_GOSSAMER_COMPLETE" in (tmp_path / PLACES[shell]).read_text()
    assert shell in capsys.readouterr().out


def test_the_shell_of_the_environment_is_taken_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert main(["--install-completion"]) == 0
    assert (tmp_path / PLACES["fish"]).exists()


def test_another_shell_is_refused_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--install-completion", "tcsh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "offered"), [("gossamer cra", "crawl"), ("gossamer crawl --dep", "--depth")])
def test_commands_and_options_are_completed(typed: str, offered: str) -> None:
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_GOSSAMER_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-m", "gossamer"], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert f"plain,{offered}" in done.stdout.splitlines()
