"""Makes the checkout's own environment, `.venv`; called by `./gossamer` when lock and stamp differ.

Standard library only, for it runs before anything is installed. Promises:
 - one set-up at a time: the lock is held by this process and by the pip that it starts, so that neither outlives it;
 - never half-installed: stamps (copies of the locks) are taken away before a change and written as its last step;
 - standard output stays clean, for the command that follows owns it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The locks that are installed once that of a kind is: dev.lock holds every line of run.lock, at the same version.
LOCKS_OF = {"run": ("run",), "dev": ("run", "dev")}

# Where pip puts things is ours to say; how it reaches its index (PIP_INDEX_URL, proxies, certificates) is the user's.
PLACEMENT = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV", "PIP_DRY_RUN")

# Both folders hold packages: src the crawler, the root these tools. Relative to site-packages, so a checkout may move.
PATH_FILE = "../../../../src\n../../../..\n"

UNREACHED = re.compile(
    r"Failed to establish a new connection|NewConnectionError|Temporary failure in name resolution|ProxyError"
    r"|Network is unreachable|ConnectTimeout|NameResolutionError|Could not fetch URL|Read timed out|SSLError"
)


class SetupError(Exception):
    """One line for the user: what is wrong and what to do."""


class NothingInstalled(SetupError):
    """pip failed before it changed anything: the environment is as it was."""


class Checkout:
    """The paths of one checkout, and what its environment holds now."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"
        self.stamps = self.venv / "stamps"

    def lock(self, kind: str) -> Path:
        return self.root / "requirements" / f"{kind}.lock"

    def stamp(self, kind: str) -> Path:
        return self.stamps / f"{kind}.lock"

    def matches(self, kind: str) -> bool:
        """Whether everything in the lock `kind` is installed; the development lock includes the other one."""
        try:
            return all(self.lock(name).read_bytes() == self.stamp(name).read_bytes() for name in LOCKS_OF[kind])
        except FileNotFoundError:
            return False

    def python_runs(self) -> bool:
        """Whether the environment's Python works and looks for packages where we put them."""
        probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
        try:
            return subprocess.run([self.python, "-I", "-c", probe], capture_output=True, check=False).returncode == 0
        except OSError:
            return False


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def only_one(root: Path) -> Iterator[int]:
    """Hold the checkout's set-up lock; yields its descriptor, which children inherit to keep it held."""
    descriptor = os.open(root / ".venv.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up of this checkout runs; waiting for it ...")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def create_venv(checkout: Checkout, held: int) -> None:
    # The real path names the exact version, so that an upgrade of Python makes the link dangle and is noticed.
    base = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    done = subprocess.run(
        [base, "-I", "-m", "venv", "--clear", str(checkout.venv)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, pass_fds=[held],
    )  # fmt: skip
    if done.returncode != 0:
        raise SetupError(f"cannot create {checkout.venv}: {last_line(done.stdout)}")


def pip_environment(environment: dict[str, str]) -> dict[str, str]:
    """The caller's environment for pip: ways to the index as they are, places taken out."""
    kept = {name: value for name, value in environment.items() if name not in PLACEMENT}
    # Building from source needs compilers and fetches unlocked build tools; a person who wants it sets this to nothing.
    kept.setdefault("PIP_ONLY_BINARY", ":all:")
    return kept


def install(checkout: Checkout, kind: str, held: int) -> None:
    command = [
        str(checkout.python), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
        "--require-hashes", "-r", str(checkout.lock(kind)),
    ]  # fmt: skip
    # To compile every module is a sixth of pip's work, and a command imports one in ten: Python compiles that one then.
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        command.append("--no-compile")
    done = subprocess.run(
        command, env=pip_environment(dict(os.environ)), pass_fds=[held],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    log = checkout.venv / "setup.log"
    log.write_text(done.stdout, encoding="utf-8")
    if done.returncode != 0:
        changed = "Installing collected packages" in done.stdout
        raise (SetupError if changed else NothingInstalled)(explain(done.stdout, log))


def explain(output: str, log: Path) -> str:
    """One line out of pip's many."""
    if "No space left on device" in output:
        return f"the disk of {log.parent} is full; free some space and run this again."
    if "DO NOT MATCH THE HASHES" in output:
        return f"a downloaded package differs from the hash in the lock, so nothing was installed; see {log}."
    if UNREACHED.search(output):
        return (
            "the package index cannot be reached; check the network, or tell pip the way "
            f"(PIP_INDEX_URL, HTTPS_PROXY, PIP_CERT), and run this again; see {log}."
        )
    missing = re.search(r"No matching distribution found for (\S+)", output)
    if missing:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return (
            f"no ready-made {missing[1]} for Python {version} on this machine. Try another Python "
            f"(GOSSAMER_PYTHON=python3.13), or build it from source (PIP_ONLY_BINARY=); see {log}."
        )
    return f"pip failed: {last_line(output)} See {log}."


def explain_refusal(error: OSError) -> str:
    """One line out of what the file system says."""
    where = error.filename or ROOT
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"cannot write to {where}; use a copy of the checkout that is yours."
    return f"set-up failed: {error.strerror or error}: {where}"


def last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["it said nothing."])[-1]


def write_path_file(checkout: Checkout) -> None:
    """Make src/ and tools/ importable by the environment's Python, without building or copying a package."""
    folders = list((checkout.venv / "lib").glob("python3.*/site-packages"))
    if len(folders) != 1:
        raise SetupError(f"{checkout.venv} is not as venv makes it; delete it and run this again.")
    (folders[0] / "gossamer-checkout.pth").write_text(PATH_FILE, encoding="utf-8")


def set_up(checkout: Checkout, kind: str, held: int) -> None:
    # Without a stamp an earlier set-up was interrupted; what it left is not worth trusting.
    fresh = not (checkout.stamp("run").exists() and checkout.python_runs())
    what = "Gossamer with its developers' tools" if kind == "dev" else "Gossamer"
    say(f"Setting up {what} in .venv ({'once, about a minute' if fresh else 'adding what its lock asks for'}) ...")
    locks = {f"{name}.lock": checkout.lock(name).read_bytes() for name in LOCKS_OF[kind]}
    if fresh:
        shutil.rmtree(checkout.stamps, ignore_errors=True)
        create_venv(checkout, held)
    with stamps_away(checkout):
        install(checkout, kind, held)
    write_path_file(checkout)
    # Renamed into place as a whole, so that no stamp is ever half written.
    part = checkout.venv / "stamps.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name, content in locks.items():
        (part / name).write_bytes(content)
    part.rename(checkout.stamps)


@contextmanager
def stamps_away(checkout: Checkout) -> Iterator[None]:
    """No stamps while packages change; they return if nothing did, so that a failed download costs nothing."""
    kept = checkout.venv / "stamps.kept"
    shutil.rmtree(kept, ignore_errors=True)
    if checkout.stamps.exists():
        checkout.stamps.rename(kept)
    try:
        yield
    except NothingInstalled:
        if kept.exists():
            kept.rename(checkout.stamps)
        raise
    shutil.rmtree(kept, ignore_errors=True)


def prepare(root: Path, kind: str) -> None:
    """Bring the environment of the checkout at `root` up to the lock `kind`; raises SetupError or OSError."""
    checkout = Checkout(root)
    with only_one(root) as held:
        # A process that waited for the lock finds the work done.
        if not (checkout.matches(kind) and checkout.python_runs()):
            set_up(checkout, kind, held)


def main(arguments: list[str]) -> int:
    if arguments not in (["run"], ["dev"]):
        say("usage: bootstrap.py run|dev")
        return 2
    try:
        prepare(ROOT, arguments[0])
    except SetupError as error:
        say(f"gossamer: {error}")
    except OSError as error:
        say(f"gossamer: {explain_refusal(error)}")
    except KeyboardInterrupt:
        say("gossamer: set-up interrupted; the next run begins it anew.")
        return 130
    else:
        return 0
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
