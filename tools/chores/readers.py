"""Let pywb replay a crawl and py-wacz validate it, in an environment of their own (half a minute, longer the first time)."""

from __future__ import annotations

import os
import subprocess
import sys

from tools.checkout import ROOT
from tools.chores import test

#: They cannot live in ours: pywb is under the GPL and wants older libraries than those that are locked.
PACKAGES = ("pywb>=2.10", "wacz>=0.6", "pyarrow>=20")

PLACE = ROOT / ".readers"


def main(arguments: list[str]) -> int:
    from uv import find_uv_bin

    python = PLACE / "bin" / "python"
    if not python.exists():
        try:
            subprocess.run([find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(PLACE)], check=True)
            install = [find_uv_bin(), "pip", "install", "--quiet", "--python", str(python), "setuptools", *PACKAGES]
            subprocess.run(install, check=True)
        except subprocess.CalledProcessError as error:
            print(
                f"gossamer dev readers: uv failed (exit {error.returncode}); its reason stands above.", file=sys.stderr
            )
            return 1
    os.environ["GOSSAMER_READERS"] = str(python)
    return test.main(["-m", "long", "tests/journeys/test_readers.py", *arguments])
