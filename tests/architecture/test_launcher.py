"""The promises of ./gossamer and tools/bootstrap.py, kept by real runs of real copies, with pip cut off from any index.

The locks name `parcel`, a package that the tests build themselves, so that pip installs for good and offline.
"""

import base64
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools import bootstrap

ROOT = Path(__file__).resolve().parents[2]

# What the crawler and the tools are replaced by: they tell what they got and end as they are told.
PROGRAM = """\
import sys
import parcel
print(sys._xoptions["called"] if "name" in sys.argv else sys.argv[1:], parcel.VERSION)
sys.exit(int(sys.argv[1]) if sys.argv[1:2] and sys.argv[1].isdigit() else 0)
"""
SETTING_UP = "Setting up Gossamer"


def wheel(folder: Path, version: str, name: str = "parcel") -> str:
    """Build the package into `folder`; returns its line for a lock."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD"
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},{len(text)}"
        for path, text in files.items()
    ]
    files[record] = "\n".join([*rows, f"{record},,\n"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in files.items():
            archive.writestr(zipfile.ZipInfo(inner), text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@dataclass
class Checkout:
    """A small checkout with the true launcher, and the machine on which it stands."""

    root: Path
    wheels: Path

    def environment(self, path: str | None = None) -> dict[str, str]:
        # Nothing else: neither the test runner's variables nor the machine's way to an index.
        return {
            "PATH": path or f"{Path(sys.executable).resolve().parent}:{os.environ['PATH']}",
            "HOME": str(self.root.parent),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": self.wheels.as_uri(),
            "PIP_CONFIG_FILE": os.devnull,
        }

    def start(
        self, *arguments: str, launcher: str | None = None, cwd: Path | None = None, **extra: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [launcher or self.root / "gossamer", *arguments],
            env=self.environment(extra.pop("PATH", None)) | extra,
            cwd=cwd or self.root.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **how)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def lock(self, kind: str, text: str) -> None:
        (self.root / "requirements" / f"{kind}.lock").write_text(text, encoding="utf-8")

    def copy(self, folder: Path) -> "Checkout":
        root = folder / "a moved check-out"
        shutil.copytree(self.root, root, symlinks=True)
        return Checkout(root, self.wheels)


def make_checkout(folder: Path) -> Checkout:
    root, wheels = folder / "a check-out", folder / "wheels"
    wheels.mkdir()
    for module in ("src/gossamer", "tools"):
        (root / module).mkdir(parents=True)
        (root / module / "__init__.py").touch()
        (root / module / "__main__.py").write_text(PROGRAM, encoding="utf-8")
    shutil.copy2(ROOT / "gossamer", root)
    shutil.copy2(ROOT / "tools" / "bootstrap.py", root / "tools")
    (root / "requirements").mkdir()
    checkout = Checkout(root, wheels)
    line = wheel(wheels, "1.0")
    checkout.lock("run", line)
    checkout.lock("dev", line + wheel(wheels, "7.0", name="workbench"))
    return checkout


@pytest.fixture
def bare(tmp_path: Path) -> Checkout:
    """A checkout as cloned."""
    return make_checkout(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, subprocess.CompletedProcess[str]]:
    """A checkout after its first run, and that run."""
    checkout = make_checkout(tmp_path_factory.mktemp("first"))
    return checkout, checkout.run("hello")


@pytest.fixture
def ready(first: tuple[Checkout, subprocess.CompletedProcess[str]], tmp_path: Path) -> Checkout:
    """A copy of a checkout that has been set up, so also a moved one."""
    return first[0].copy(tmp_path)


@pytest.fixture
def no_python(tmp_path: Path) -> Path:
    """A folder for PATH that holds what the launcher needs from the system, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cmp", "readlink"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def fake_python(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The refusal: exit 2, nothing on standard output, one line of error."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_the_first_run_sets_up_says_so_once_and_runs(
    first: tuple[Checkout, subprocess.CompletedProcess[str]],
) -> None:
    _, done = first
    assert (done.returncode, done.stdout) == (0, "['hello'] 1.0\n")
    assert done.stderr == "Setting up Gossamer in .venv (once, about a minute) ...\n"


def test_a_later_run_needs_no_python_but_its_own_and_says_nothing(ready: Checkout, no_python: Path) -> None:
    done = ready.run("hello", PATH=str(no_python))
    assert (done.returncode, done.stdout, done.stderr) == (0, "['hello'] 1.0\n", "")


def test_the_exit_code_passes_through(ready: Checkout) -> None:
    assert ready.run("5").returncode == 5
    assert ready.run("dev", "6").returncode == 6


def test_arguments_pass_through_as_they_are(ready: Checkout) -> None:
    assert ready.run("a b", "", "*", "dev").stdout == "['a b', '', '*', 'dev'] 1.0\n"


def test_it_runs_through_links_from_any_folder(ready: Checkout, tmp_path: Path) -> None:
    here = tmp_path / "else where"
    here.mkdir()
    (here / "far").symlink_to(ready.root / "gossamer")
    (here / "near").symlink_to("far")
    done = ready.run("hello", launcher="./near", cwd=here)
    assert (done.stdout, done.stderr) == ("['hello'] 1.0\n", "")


def test_files_in_the_callers_folder_are_not_imported(ready: Checkout, tmp_path: Path) -> None:
    here = tmp_path / "trap"
    here.mkdir()
    (here / "parcel.py").write_text("VERSION = 'a trap'\n", encoding="utf-8")
    assert ready.run("hello", cwd=here).stdout == "['hello'] 1.0\n"


def test_a_changed_lock_is_installed(ready: Checkout) -> None:
    ready.lock("run", wheel(ready.wheels, "2.0"))
    done = ready.run("hello")
    assert done.stdout == "['hello'] 2.0\n"
    assert done.stderr.startswith(SETTING_UP)
    assert ready.run("hello").stderr == ""


def test_dev_adds_its_lock_to_the_same_environment(ready: Checkout) -> None:
    done = ready.run("dev", "hello")
    assert done.stdout == "['hello'] 1.0\n"
    assert done.stderr.startswith(f"{SETTING_UP} with its developers' tools")
    assert list(ready.root.glob(".venv/lib/*/site-packages/workbench.py"))
    assert ready.run("dev", "hello").stderr == ""
    assert ready.run("hello").stderr == ""


def test_a_failed_download_leaves_the_environment_as_it_was(ready: Checkout) -> None:
    before = (ready.root / "requirements" / "run.lock").read_text(encoding="utf-8")
    ready.lock("run", before.replace("1.0", "9.9"))
    assert "parcel==9.9" in one_line_after_setting_up(ready.run("hello"))
    ready.lock("run", before)
    assert ready.run("hello").stderr == ""


def one_line_after_setting_up(done: subprocess.CompletedProcess[str]) -> str:
    announced, _, rest = done.stderr.partition("\n")
    assert announced.startswith(SETTING_UP)
    done.stderr = rest
    return one_line(done)


def test_a_package_that_differs_from_its_hash_is_refused(ready: Checkout) -> None:
    ready.lock("run", wheel(ready.wheels, "3.0").replace("sha256:", "sha256:0123")[:-5] + "\n")
    assert "differs from the hash" in one_line_after_setting_up(ready.run("hello"))


@pytest.mark.long
def test_an_interrupted_set_up_is_begun_anew(ready: Checkout) -> None:
    shutil.rmtree(ready.root / ".venv" / "stamps")
    leftover = ready.root / ".venv" / "half-installed"
    leftover.touch()
    done = ready.run("hello")
    assert (done.returncode, done.stdout) == (0, "['hello'] 1.0\n")
    assert not leftover.exists()


@pytest.mark.long
def test_an_environment_whose_python_vanished_is_rebuilt(ready: Checkout) -> None:
    for link in (ready.root / ".venv" / "bin").glob("python*"):
        link.unlink()
        link.symlink_to("/nowhere/python")
    done = ready.run("hello")
    assert (done.returncode, done.stdout) == (0, "['hello'] 1.0\n")


@pytest.mark.long
def test_of_two_first_runs_one_sets_up_and_the_other_waits(bare: Checkout) -> None:
    runs = [bare.start("hello") for _ in range(2)]
    outputs = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert [out for out, _ in outputs] == ["['hello'] 1.0\n"] * 2
    assert sum(SETTING_UP in err for _, err in outputs) == 1


def test_without_python_one_line_says_what_to_install(bare: Checkout, no_python: Path) -> None:
    assert "no Python 3.11 or newer found. Install one" in one_line(bare.run(PATH=str(no_python)))


def test_an_old_python_is_named_and_refused(bare: Checkout, no_python: Path) -> None:
    fake_python(no_python, "python3", "printf 3.9; exit 3")
    assert "python3 is 3.9" in one_line(bare.run(PATH=str(no_python)))
    assert not (bare.root / ".venv").exists()


def test_a_python_without_venv_names_the_package_to_install(bare: Checkout, no_python: Path) -> None:
    fake_python(no_python, "python3", "printf 3.11; exit 4")
    assert "apt install python3.11-venv" in one_line(bare.run(PATH=str(no_python)))


def test_a_shim_that_fails_is_passed_over(bare: Checkout, no_python: Path) -> None:
    fake_python(no_python, "python3", "echo 'command not found' >&2; exit 127")
    fake_python(no_python, "python3.13", "printf 3.9; exit 3")
    fake_python(no_python, "python3.12", 'case $1 in -E) printf 3.12 ;; *) echo "set up by 3.12" >&2; exit 9 ;; esac')
    done = bare.run(PATH=str(no_python))
    assert (done.returncode, done.stderr) == (9, "set up by 3.12\n")


@pytest.mark.parametrize(("body", "reason"), [("exit 1", "does not run"), ("printf 3.10; exit 3", "is Python 3.10")])
def test_a_python_that_the_user_named_is_never_replaced(
    bare: Checkout, no_python: Path, body: str, reason: str
) -> None:
    fake_python(no_python, "python3", "case $1 in -E) printf 3.12 ;; esac")
    fake_python(no_python, "mine", body)
    done = bare.run(PATH=str(no_python), GOSSAMER_PYTHON="mine")
    assert f"GOSSAMER_PYTHON (mine) {reason}" in one_line(done)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_a_folder_that_cannot_be_written_is_named(number: int) -> None:
    line = bootstrap.explain_refusal(OSError(number, os.strerror(number), "/some/where/.venv.lock"))
    assert line.startswith("cannot write to /some/where/.venv.lock; ")


def test_a_file_in_the_way_of_the_set_up_is_named(bare: Checkout) -> None:
    (bare.root / ".venv.lock").mkdir()
    assert f"Is a directory: {bare.root / '.venv.lock'}" in one_line(bare.run())


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        (
            "WARNING: Retrying ... Failed to establish a new connection: [Errno 101]\nERROR: No matching",
            "check the net",
        ),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk"),
        ("ERROR: No matching distribution found for pycurl==7.46", "no ready-made pycurl==7.46 for Python 3."),
        ("Collecting x\nerror: something else broke\n", "something else broke"),
        ("", "it said nothing"),
    ],
)
def test_what_pip_says_at_length_is_told_in_one_line(output: str, advice: str) -> None:
    line = bootstrap.explain(output, Path("setup.log"))
    assert advice in line
    assert "\n" not in line


def test_pip_keeps_its_ways_to_the_index_and_loses_other_places() -> None:
    given = {"PIP_INDEX_URL": "x", "HTTPS_PROXY": "y", "PIP_USER": "1", "PIP_TARGET": "/else"}
    assert bootstrap.pip_environment(given) == {"PIP_INDEX_URL": "x", "HTTPS_PROXY": "y", "PIP_ONLY_BINARY": ":all:"}
    assert bootstrap.pip_environment({"PIP_ONLY_BINARY": ""}) == {"PIP_ONLY_BINARY": ""}


def test_hints_can_name_the_launcher_as_it_was_typed(ready: Checkout) -> None:
    beside = ready.root / "docs"
    beside.mkdir()
    assert ready.run("name", launcher="./gossamer", cwd=ready.root).stdout == "./gossamer 1.0\n"
    assert ready.run("name", launcher="../gossamer", cwd=beside).stdout == "../gossamer 1.0\n"
    path = f"{ready.root}:{ready.environment()['PATH']}"
    assert ready.run("-c", "gossamer name", launcher="sh", cwd=beside, PATH=path).stdout == "gossamer 1.0\n"


@pytest.mark.long
@pytest.mark.parametrize(("kept_out", "compiled"), [("", False), ("1", True)])
def test_only_modules_that_are_imported_are_compiled_unless_python_would_keep_none(
    bare: Checkout, kept_out: str, compiled: bool
) -> None:
    """`workbench` is installed and not imported; `parcel` is both."""
    assert bare.run("dev", "hello", PYTHONDONTWRITEBYTECODE=kept_out).returncode == 0
    found = {
        path.name.partition(".")[0] for path in (bare.root / ".venv").glob("lib/*/site-packages/__pycache__/*.pyc")
    }
    assert ("workbench" in found, "parcel" in found) == (compiled, True)
