"""Format the code and mend what the linter can mend."""

from __future__ import annotations

import subprocess
import sys

from tools.checkout import ROOT


def main(arguments: list[str]) -> int:
    for line in (["check", "--fix-only", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run([sys.executable, "-P", "-m", "ruff", *line, *(arguments or ["."])], cwd=ROOT, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0
