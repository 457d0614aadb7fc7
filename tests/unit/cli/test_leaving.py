"""Ctrl-C at a command that is not yet there: the process ends with the documented status, and shows no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.cli.saying import interruptible
from gossamer.testing.clock import HUNG_AFTER

SOURCE = str(Path(__file__).resolve().parents[3] / "src")

#: A library of the command line in whose loading the signal comes.
INTERRUPTED = """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
raise RuntimeError("the process went on")
"""


def test_an_interrupt_while_modules_are_loaded_ends_the_command_with_3_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gossamer", "status", "c"],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE}"},
        timeout=HUNG_AFTER,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


def test_a_command_is_interrupted_by_an_error_that_it_can_catch_and_the_signal_is_given_back() -> None:
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    given = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt), interruptible():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is given
    finally:
        signal.signal(signal.SIGINT, previous)


def test_a_command_that_has_taken_the_signal_for_good_keeps_it() -> None:
    previous = signal.getsignal(signal.SIGINT)

    def taken(*_: object) -> None: ...

    try:
        with interruptible():
            signal.signal(signal.SIGINT, taken)
        assert signal.getsignal(signal.SIGINT) is taken
    finally:
        signal.signal(signal.SIGINT, previous)


def test_an_ignored_interrupt_stays_ignored() -> None:
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)
