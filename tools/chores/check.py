"""Everything but running the tests: lint, format, types, layers, locks, change fragments, reference, measures of the house, and
whether the tests can be collected."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tools import ROOT, house
from tools.chores import changes, docs, package, test


@dataclass(frozen=True)
class Check:
    name: str
    run: Callable[[], str]  # what is wrong, empty for nothing
    advice: str = ""


def tool(*line: str) -> Callable[[], str]:
    """A program of the environment that is silent about what is right, by its exit status."""

    def run() -> str:
        command = [sys.executable, "-P", "-m", *line]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=test.environment())
        return "" if done.returncode == 0 else (done.stdout + done.stderr).strip() or f"exit {done.returncode}"

    return run


def listed(problems: Callable[[], list[str]]) -> Callable[[], str]:
    return lambda: "\n".join(problems())


CHECKS = (
    Check("lint", tool("ruff", "check", "--quiet", "."), "./gossamer dev format mends what can be mended"),
    Check("format", tool("ruff", "format", "--quiet", "--check", "."), "./gossamer dev format mends it"),
    Check("types", tool("mypy")),
    # Asserts are rewritten once here, and the workers of a run that follows read the bytecode: 20 s of CPU less for each of them.
    Check("tests", tool("pytest", "--collect-only", "--quiet", "tests")),
    Check("layers", tool("tools.chores.check")),
    Check("locks", listed(package.problems)),
    Check("changes", listed(changes.problems)),
    Check("reference", listed(docs.problems)),
    Check(
        "house",
        listed(house.problems),
        "tools/house.py says what is measured; make the change smaller, or say why in tools/house.toml",
    ),
)


def main(arguments: list[str]) -> int:
    known = {check.name: check for check in CHECKS}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        print(f"gossamer dev check: there is no {unknown[0]!r}; known are {', '.join(known)}.", file=sys.stderr)
        return 2
    chosen = [known[name] for name in arguments] or CHECKS
    failed = 0

    def timed(check: Check) -> tuple[str, float]:
        """The faults that a check found, and the seconds that it took."""
        begun = time.monotonic()
        return check.run(), time.monotonic() - begun

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for check, (wrong, seconds) in zip(chosen, pool.map(timed, chosen), strict=True):
            print(f"{'FAILED' if wrong else 'ok':<7} {check.name:<10} {seconds:5.1f} s", flush=True)
            if wrong:
                failed += 1
                print(wrong + (f"\n{check.advice}" if check.advice else ""), flush=True)
    return 1 if failed else 0


def reformat(arguments: list[str]) -> int:
    for line in (["check", "--fix-only", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run([sys.executable, "-P", "-m", "ruff", *line, *(arguments or ["."])], cwd=ROOT, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0


def layers() -> int:
    """Run the import contracts of pyproject.toml, in a process of its own: the linter changes global state."""
    from importlinter.cli import lint_imports

    settings, cache = ROOT / "pyproject.toml", ROOT / ".import_linter_cache"
    return lint_imports(config_filename=str(settings), cache_dir=str(cache), no_logo=True)


if __name__ == "__main__":
    sys.exit(layers())
