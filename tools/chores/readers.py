"""Let pywb replay a crawl, py-wacz validate it and pyftpdlib be crawled, from an environment of their own (a minute)."""

from __future__ import annotations

import os
import subprocess
import sys

from tools.checkout import ROOT
from tools.chores import test

#: They cannot live in ours: pywb is under the GPL and wants older libraries than those that are locked.
#: pyftpdlib has no wheel, and the set-up of a checkout builds nothing.
PACKAGES = ("pywb>=2.10", "wacz>=0.6", "pyarrow>=20", "pyftpdlib>=2.1")

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
    journeys = ["tests/journeys/test_readers.py", "tests/journeys/test_other_protocols.py"]
    return test.main(["-m", "long or not long", *journeys, *arguments])
