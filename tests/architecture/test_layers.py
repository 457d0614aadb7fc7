"""The import contracts of pyproject.toml hold, and each of them can fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def lint(source: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    """Run the contracts over the package in `source`."""
    program = (
        "import sys; from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(sys.argv[1], tuple(sys.argv[2:]), no_cache=True, no_logo=True))"
    )
    line = [sys.executable, "-P", "-c", program, str(ROOT / "pyproject.toml"), *contracts]
    return subprocess.run(line, env=os.environ | {"PYTHONPATH": str(source)}, capture_output=True, text=True)


def test_every_import_contract_holds() -> None:
    done = lint(ROOT / "src")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("contract", "module", "line"),
    [
        ("layers", "values/upward.py", "import gossamer.crawls"),
        ("layers", "frontier/subjective.py", "import gossamer.recrawl.schedule"),
        ("layers", "unplaced/__init__.py", ""),
        ("core", "storage/sideways.py", "import gossamer.frontier.frontier"),
        ("door", "engine/outside.py", "import gossamer"),
        ("testing", "cli/faking.py", "import gossamer.testing"),
        ("values", "values/waiting.py", "import asyncio"),
        ("machine-room", "engine/browsing.py", "import urllib.parse"),
        ("libcurl", "storage/fetching.py", "import pycurl"),
        ("duckdb", "storage/asking.py", "import duckdb"),
        ("duckdb", "query/framing.py", "import duckdb"),
        ("html-parser", "values/other.py", "import selectolax"),
    ],
)
def test_a_breach_of_a_contract_is_noticed(tmp_path: Path, contract: str, module: str, line: str) -> None:
    package = tmp_path / "gossamer"
    shutil.copytree(ROOT / "src" / "gossamer", package, ignore=shutil.ignore_patterns("__pycache__"))
    breach = package / module
    breach.parent.mkdir(exist_ok=True)
    breach.write_text(f"{line}\n", encoding="utf-8")
    done = lint(tmp_path, contract)
    assert done.returncode == 1, done.stdout
    assert breach.stem in done.stdout or breach.parent.stem in done.stdout


@pytest.mark.parametrize(
    ("contract", "module", "line"),
    [
        ("layers", "cli/extra.py", "from gossamer import crawls, values"),
        ("layers", "recrawl/commands.py", "import gossamer.cli.saying"),
        ("core", "storage/politely.py", "import gossamer.frontier.contract"),
        ("door", "engine/inside.py", "from gossamer._version import __version__"),
        ("libcurl", "fetcher/other.py", "import pycurl"),
        ("html-parser", "parsing/links.py", "import selectolax.lexbor"),
    ],
)
def test_what_the_design_allows_is_allowed(tmp_path: Path, contract: str, module: str, line: str) -> None:
    package = tmp_path / "gossamer"
    shutil.copytree(ROOT / "src" / "gossamer", package, ignore=shutil.ignore_patterns("__pycache__"))
    path = package / module
    if not path.parent.exists():
        path.parent.mkdir()
        (path.parent / "__init__.py").touch()
    path.write_text(f"{line}\n", encoding="utf-8")
    done = lint(tmp_path, contract)
    assert done.returncode == 0, done.stdout
