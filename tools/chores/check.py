"""The tests, by pytest, those too that other programs take part in; and everything else that a change must pass: lint, format,
types, layers, locks, change fragments, reference, measures of the house, and whether the tests can be collected.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools import ROOT, house, set_test_data
from tools.chores import release

# With these, workers would only be in the way: a debugger needs the terminal, one test needs no second process.
ALONE = ("-n", "--numprocesses", "--pdb", "--trace", "--collect-only", "--co")

#: Options by which a person names tests, who then wants these, slow or not.
NAMING = ("-k", "-m", "--lf", "--last-failed", "--ff", "--failed-first")

ALL = "--all"

#: A worker often waits, for disks, pauses and processes: one more than there are cores keeps them busy. Two more gain nothing.
WORKERS = (os.cpu_count() or 1) + 1

#: Tells Python to keep no bytecode. The suite starts thousands of processes, and each would compile what it imports: an agent would
#: need half a second of processor time before its first line, not a fifth. Each worker would rewrite the asserts of all files anew.
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def is_path(argument: str) -> bool:
    return not argument.startswith("-") and Path(argument.partition("::")[0]).exists()


def from_root(argument: str) -> str:
    """Paths are given from where the user stands, pytest runs at the root."""
    if not is_path(argument):
        return argument
    path, separator, test = argument.partition("::")
    return f"{Path(path).resolve()}{separator}{test}"


def command(arguments: list[str]) -> list[str]:
    alone = any(argument.startswith(ALONE) or "::" in argument for argument in arguments)
    # A worker that has nothing left takes over tests of one that has: else one of them works alone for the last minutes.
    workers = [] if alone else ["-n", str(WORKERS), "--dist", "worksteal"]
    is_named = any(argument.startswith(NAMING) or is_path(argument) for argument in arguments)
    chosen = [] if is_named or ALL in arguments else ["-m", "not long and not slow"]
    rest = [from_root(argument) for argument in arguments if argument != ALL]
    # -q makes pytest's last line the bare count, "N passed in S s", which other programs read.
    return [sys.executable, "-P", "-m", "pytest", "-q", *workers, *chosen, *rest]


def environment() -> dict[str, str]:
    """The environment variables of the tests: those of now, but bytecode is kept."""
    return {name: value for name, value in os.environ.items() if name != NO_BYTECODE}


def test(arguments: list[str]) -> int:
    set_test_data()
    line = command(arguments)
    os.chdir(ROOT)
    # In place of this process: exit code, signals and last line are pytest's own.
    os.execve(line[0], line, environment())


def accuracy(arguments: list[str]) -> int:
    return test(["-m", "long", "tests/journeys/test_accuracy.py", *arguments])


def divided(arguments: list[str]) -> int:
    return test(["-m", "long", "tests/journeys/test_divided_crawl.py", *arguments])


def properties(arguments: list[str]) -> int:
    return test(["--hypothesis-profile=long", "tests/properties", *arguments])


#: They cannot live in ours: pywb is under the GPL and wants older libraries than those that are locked.
#: pyftpdlib has no wheel, and the set-up of a checkout builds nothing.
PACKAGES = ("pywb>=2.10", "wacz>=0.6", "pyarrow>=20", "pyftpdlib>=2.1")


#: Ray and what comes with it are 140 MB, which the tests of the rest need none of.
RAY_TESTS = ("tests/journeys/test_ray_documents.py", "tests/journeys/test_agents_on_ray.py")
RAY = ("--editable", f"{ROOT}[ray,store,words]")


def readers(arguments: list[str]) -> int:
    journeys = ["tests/journeys/test_readers.py", "tests/journeys/test_other_protocols.py"]
    return _beside("readers", ("setuptools", *PACKAGES), ["-m", "long or not long", *journeys, *arguments])


def ray(arguments: list[str]) -> int:
    return _beside("ray", RAY, ["-n", "0", *RAY_TESTS, *arguments])


def _beside(verb: str, packages: tuple[str, ...], arguments: list[str]) -> int:
    """Run tests that find the Python of an environment of their own in `GOSSAMER_VERB`; it is made the first time."""
    from uv import find_uv_bin

    place = ROOT / f".{verb}"
    python = place / "bin" / "python"
    if not python.exists():
        try:
            subprocess.run([find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(place)], check=True)
            install = [find_uv_bin(), "pip", "install", "--quiet", "--python", str(python), *packages]
            subprocess.run(install, check=True)
        except subprocess.CalledProcessError as error:
            print(
                f"gossamer dev {verb}: uv failed (exit {error.returncode}); its reason stands above.", file=sys.stderr
            )
            return 1
    os.environ[f"GOSSAMER_{verb.upper()}"] = str(python)
    return test(arguments)


@dataclass(frozen=True)
class Check:
    name: str
    run: Callable[[], str]  # what is wrong, empty for nothing
    advice: str = ""


def tool(*line: str) -> Callable[[], str]:
    """A program of the environment that is silent about what is right, by its exit status."""

    def run() -> str:
        command = [sys.executable, "-P", "-m", *line]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment())
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
    Check("locks", listed(release.problems)),
    Check("changes", listed(release.problems_of_fragments)),
    Check("reference", tool("tools", "docs", "--check")),
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
