"""What is refused before Ray is asked, and how a process ends with the one that began it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.engine.processes import ENDS_WITH, command, environment
from gossamer.ray.cluster import label_of
from gossamer.ray.connecting import check_version
from gossamer.ray.host import _own_folder
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import UsageError


def test_without_ray_the_error_names_the_command_that_installs_it() -> None:
    with pytest.raises(UsageError, match=r"--cluster ray needs Ray; install it: .*'ray\[data\]>=2.52'"):
        check_version("")


def test_a_ray_without_tokens_is_too_old() -> None:
    with pytest.raises(UsageError, match=r"--cluster ray needs Ray 2\.52 or newer, and this is 2\.9\.3; upgrade it"):
        check_version("2.9.3")
    check_version("2.52.0")
    check_version("3.0.0")


def test_a_place_is_the_value_of_a_label_of_nodes() -> None:
    assert label_of("oslo") == ("place", "oslo")
    assert label_of("ray.io/availability-zone=eu-north-1a") == ("ray.io/availability-zone", "eu-north-1a")


def test_an_agent_begins_in_the_folder_that_it_left_and_in_a_new_one_where_that_is_not(tmp_path: Path) -> None:
    left = tmp_path / "left" / "state"
    left.mkdir(parents=True)
    (left / "machine.json").write_text('{"folder": "f1", "agent": "agent-00"}')
    damaged = tmp_path / "damaged" / "state"
    damaged.mkdir(parents=True)
    (damaged / "machine.json").write_text("[")
    assert _own_folder(tmp_path, "f1") == tmp_path / "left"
    for unknown in ("f2", ""):
        fresh = _own_folder(tmp_path, unknown)
        assert fresh.parent == tmp_path and not fresh.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_what_a_process_has_begun_ends_with_it_and_what_that_has_begun_too(tmp_path: Path) -> None:
    # Three processes: each begins the next one as ours are begun, and the last one says who they are.
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "begins.py").write_text(
        "import os, subprocess, sys, time\n"
        "from gossamer.engine.processes import command, environment\n"
        "left = int(sys.argv[1])\n"
        "print(os.getpid(), flush=True)\n"
        "if left:\n"
        "    subprocess.Popen(command('begins', str(left - 1)), env=environment())\n"
        "time.sleep(600)\n"
    )
    variables = {**environment(), ENDS_WITH: str(os.getpid())}
    variables["GOSSAMER_IMPORT_PATH"] += f"{os.pathsep}{folder}"
    first = subprocess.Popen(command("begins", "2"), env=variables, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    numbers = [int(first.stdout.readline()) for _ in range(3)]
    assert numbers[0] == first.pid
    first.send_signal(signal.SIGKILL)
    # The pipe is closed when the last of them is gone.
    assert first.communicate(timeout=HUNG_AFTER)[0] == ""
