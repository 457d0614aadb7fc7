"""`./gossamer dev test` leaves slow tests out, unless somebody asks for them, and wastes no time of the machine."""

import os

import pytest

from tools.chores.check import command, environment

QUICK = "not long and not slow"


@pytest.mark.parametrize("arguments", [[], ["-x"], ["--pdb"]])
def test_slow_tests_are_left_out(arguments: list[str]) -> None:
    assert QUICK in command(arguments)


def test_all_of_the_suite_runs_by_request() -> None:
    line = command(["--all", "-x"])
    assert QUICK not in line
    assert "--all" not in line, "pytest does not know it"
    assert line[-1] == "-x"


@pytest.mark.parametrize("arguments", [["-k", "robots"], ["-m", "slow"], [__file__], [f"{__file__}::test_x"]])
def test_who_names_tests_runs_them_slow_or_not(arguments: list[str]) -> None:
    assert QUICK not in command(arguments)


def test_a_worker_more_than_there_are_cores_runs_while_others_wait() -> None:
    line = command(["--all"])
    assert int(line[line.index("-n") + 1]) == (os.cpu_count() or 1) + 1
    assert "-n" not in command(["--pdb"])


def test_what_the_tests_import_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("KEPT", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in environment()
    assert environment()["KEPT"] == "1"
