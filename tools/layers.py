"""Runs the import contracts of pyproject.toml; a module of its own because the linter changes global state."""

from __future__ import annotations

import sys

from importlinter.cli import lint_imports

from tools.checkout import ROOT


def main() -> int:
    settings, cache = ROOT / "pyproject.toml", ROOT / ".import_linter_cache"
    return lint_imports(config_filename=str(settings), cache_dir=str(cache), no_logo=True)


if __name__ == "__main__":
    sys.exit(main())
