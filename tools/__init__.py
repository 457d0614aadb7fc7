"""The workshop: what turns a checkout into a running program, the chores of its developers, and where things lie in it.

Nothing in `src/` imports from here, and an installed Gossamer does not have it.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
CHANGES = ROOT / "changes"
REFERENCE = ROOT / "docs" / "reference"


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def set_test_data() -> None:
    """Point GOSSAMER_TEST_DATA at the corpora beside the checkout, where they are; tests that want them skip else."""
    data = ROOT.parent / "shared" / "data"
    if data.is_dir():
        os.environ.setdefault("GOSSAMER_TEST_DATA", str(data))
