"""Run the test suite; arguments go to pytest (paths, -k WORD, -x, --pdb ...)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tools.checkout import ROOT, set_test_data

# With these, workers would only be in the way: a debugger needs the terminal, one test needs no second process.
ALONE = ("-n", "--numprocesses", "--pdb", "--trace", "--collect-only", "--co")


def from_root(argument: str) -> str:
    """Paths are given from where the user stands, pytest runs at the root."""
    path, separator, test = argument.partition("::")
    if argument.startswith("-") or not Path(path).exists():
        return argument
    return f"{Path(path).resolve()}{separator}{test}"


def command(arguments: list[str]) -> list[str]:
    alone = any(argument.startswith(ALONE) or "::" in argument for argument in arguments)
    workers = [] if alone else ["-n", "auto"]
    # -q makes pytest's last line the bare count, "N passed in S s", which other programs read.
    return [sys.executable, "-P", "-m", "pytest", "-q", *workers, *map(from_root, arguments)]


def main(arguments: list[str]) -> int:
    set_test_data()
    line = command(arguments)
    os.chdir(ROOT)
    # In place of this process: exit code, signals and last line are pytest's own.
    os.execv(line[0], line)
