"""The tests, whole or in part, by pytest; and those that other programs take part in."""

import os
import subprocess
import sys
from pathlib import Path

from tools import ROOT, set_test_data

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


def main(arguments: list[str]) -> int:
    set_test_data()
    line = command(arguments)
    os.chdir(ROOT)
    # In place of this process: exit code, signals and last line are pytest's own.
    os.execve(line[0], line, environment())


def accuracy(arguments: list[str]) -> int:
    return main(["-m", "long", "tests/journeys/test_accuracy.py", *arguments])


def divided(arguments: list[str]) -> int:
    return main(["-m", "long", "tests/journeys/test_divided_crawl.py", *arguments])


def properties(arguments: list[str]) -> int:
    return main(["--hypothesis-profile=long", "tests/properties", *arguments])


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
    return main(arguments)
