"""`gossamer demo`, as somebody meets it who has just unpacked it."""

import contextlib
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.testing.clock import HUNG_AFTER

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def start(*arguments: str, cwd: Path, stderr: int = subprocess.PIPE) -> "subprocess.Popen[str]":
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": str(cwd)}
    command = [sys.executable, "-m", "gossamer", *arguments]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    )


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=HUNG_AFTER)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One demo of two seconds: where it ran, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    status, out, err = finished(start("demo", "--seconds", "2", cwd=folder))
    assert (status, err) == (0, "")
    return folder, out


def test_a_demo_crawls_and_says_how_it_went(told: tuple[Path, str]) -> None:
    folder, out = told
    for word in ("Pages", "Outcomes", "Coverage", "Politeness", "Robots", "Try next"):
        assert word in out
    assert (folder / "demo-crawl" / "crawl.toml").exists()
    assert list((folder / "demo-crawl" / "warc").iterdir())


def test_what_a_demo_says_to_try_next_works(told: tuple[Path, str]) -> None:
    folder, out = told
    lines = [line for line in out.splitlines() if line.startswith("  gossamer ")]
    assert len(lines) == 7
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if "--pages" in words:
            process = start(*words, "--port", "0", cwd=folder)
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Serving")
            process.send_signal(signal.SIGINT)
        else:
            process = start(*words, cwd=folder)
        assert finished(process)[0] == 0, line
    assert (folder / "order.svg").exists()


def test_a_demo_never_replaces_the_one_before_and_speaks_json(told: tuple[Path, str]) -> None:
    folder, _ = told
    status, out, err = finished(start("demo", "--seconds", "1", "--json", cwd=folder))
    assert (status, err) == (0, "")
    summary = json.loads(out)
    assert out.count("\n") == 1
    assert summary["crawl"] == "demo-crawl-2"
    assert summary["audit"]["repeats"]["pages"] == 0
    assert summary["audit"]["coverage"]["found"] > 0


def test_on_a_terminal_progress_is_live_and_ctrl_c_ends_with_the_report(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = start("demo", "--seconds", "600", cwd=tmp_path, stderr=theirs)
    os.close(theirs)
    shown, asked = b"", False
    with contextlib.suppress(OSError):  # how a terminal says that its last writer has gone
        while piece := os.read(ours, 4096):
            shown += piece
            if b"pages/s" in shown and not asked:
                # As a terminal does it: to the whole group, the simulated web's process included.
                os.killpg(process.pid, signal.SIGINT)
                asked = True
    os.close(ours)
    out, _ = process.communicate(timeout=HUNG_AFTER)
    assert process.returncode == 0
    assert b"pages" in shown and b"queued" in shown
    assert "Try next" in out
