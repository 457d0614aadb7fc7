"""The commands of README.md run as they are printed, in order, and again on the same day; and so does its program."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sampling import sampled

from gossamer.testing.clock import HUNG_AFTER

ROOT = Path(__file__).resolve().parents[2]

#: What stands for the launcher: it would set up the environment that this test runs in.
LAUNCHER = f'#!/bin/sh\nPYTHONPATH={ROOT / "src"} exec {sys.executable} -P -m gossamer "$@"\n'


def commands() -> str:
    """The commands below "Using it", and the program among them; the site is smaller, stands on a free port, and has no page to
    wait for."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Using it")[2]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
    blocks = re.findall(r"```(sh|python)\n(.*?)```", text, re.DOTALL)
    assert [language for language, _ in blocks] == ["sh", "python", "sh", "sh"]
    text = "".join(f"python - <<'END'\n{code}END\n" if language == "python" else code for language, code in blocks)
    changes = {"8000": port, "--pages 100": "--pages 12 --set flaky_share=0", "--max-time 10s": "--max-time 2s"}
    changes |= {
        "--max-pages 10 ": "--max-pages 2 ",
        "--max-pages 20 ": "--max-pages 4 ",
        "python -": f"{sys.executable} -P -",
    }
    for printed, meant in changes.items():
        assert printed in text
        text = text.replace(printed, meant)
    return text


@pytest.mark.parametrize("times", sampled([1, 2], 2))
def test_the_commands_and_the_program_of_the_readme_run_in_order_and_twice_on_a_day(times: int, tmp_path: Path) -> None:
    launcher = tmp_path / "gossamer"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    script = f"set -e\ntrap 'kill %1' EXIT\n{commands()}"
    for _ in range(times):
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=2 * HUNG_AFTER, check=False
        )
        assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("crawl-127.0.0.1-*"))) == 3 * times
