"""`./gossamer dev test` leaves slow tests out, unless somebody asks for them."""

import pytest

from tools.chores.test import command

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
