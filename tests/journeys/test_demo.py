"""`gossamer demo`, as somebody meets it who has just unpacked it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def start(*arguments: str, cwd: Path) -> "subprocess.Popen[str]":
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": str(cwd)}
    command = [sys.executable, "-m", "gossamer", *arguments]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    )


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=90)
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
    for word in ("Pages", "Outcomes", "Coverage", "Politeness", "robots.txt", "Try next"):
        assert word in out
    assert (folder / "demo-crawl" / "crawl.toml").exists()
    assert list((folder / "demo-crawl" / "warc").iterdir())


def test_what_a_demo_says_to_try_next_works(told: tuple[Path, str]) -> None:
    folder, out = told
    lines = [line for line in out.splitlines() if line.startswith("  gossamer ")]
    assert len(lines) == 3
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


def test_ctrl_c_ends_a_demo_with_its_report(tmp_path: Path) -> None:
    process = start("demo", "--seconds", "600", cwd=tmp_path)
    rows = tmp_path / "demo-crawl" / "logs" / "crawl.jsonl"
    give_up = time.monotonic() + 60
    while not (rows.exists() and rows.stat().st_size) and time.monotonic() < give_up:
        assert process.poll() is None
        time.sleep(0.05)  # until the other process has fetched something
    # As a terminal does it: to the whole group, the simulated web's process included.
    os.killpg(process.pid, signal.SIGINT)
    status, out, _ = finished(process)
    assert status == 0
    assert "Try next" in out
