"""Stores and clocks of campaigns fail while they are told to, and not before or after."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.s3 import variables

from gossamer.backup.contract import StoreFailed
from gossamer.backup.opening import open_store
from tools.killing import Told
from tools.killing.store_faults import Clocks, StoreOfServer, StoreOnDisk

_LOOK = """
import time
print(first := time.time(), began := time.monotonic(), flush=True)
while time.time() > first - 300 and time.monotonic() < began + 60:
    time.sleep(0.02)
print(time.time(), time.monotonic())
"""


def test_a_clock_that_jumps_is_that_of_one_process_and_no_span_of_time(tmp_path: Path) -> None:
    clocks = Clocks(tmp_path / "clocks")
    command = [sys.executable, "-P", "-c", _LOOK]
    process = subprocess.Popen(command, env=clocks.environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    wall, span = map(float, process.stdout.readline().split())
    assert abs(wall - time.time()) < 300
    clocks.move(process.pid, -600.0)
    said, _ = process.communicate()
    wall, later = map(float, said.split())
    assert 300 < time.time() - wall < 900
    assert 0 < later - span < 60


def test_a_server_is_away_or_full_while_it_is_told_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables("http://127.0.0.1:1").items():
        monkeypatch.setenv(name, value)  # and as it was, afterwards
    with StoreOfServer("a-crawl") as server:
        store = open_store(server.name, patience=5.0)
        store.put("a", b"1")
        with server.full():
            with pytest.raises(StoreFailed, match="InsufficientStorage"):
                store.put("a", b"2")
            assert store.get("a") == b"1"
        with server.away(), pytest.raises(StoreFailed, match="cannot be reached"):
            store.get("a")
        store.put("a", b"3")
        assert store.get("a") == b"3"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a disk of its own")
def test_a_disk_is_full_while_it_is_told_to_be(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path / "disk")
    try:
        disk.__enter__()
    except subprocess.CalledProcessError:
        pytest.skip("this root may mount nothing")
    try:
        store = open_store(disk.name, is_new=True)
        with disk.full(), pytest.raises(StoreFailed, match="No space left on device"):
            store.put("a", b"1" * 100_000)
        store.put("a", b"2" * 100_000)
    finally:
        disk.__exit__()


def test_faults_of_several_runs_can_be_added_up_by_kind() -> None:
    told = Told()
    told.faults["slow"]["S3"] += 2
    told.faults["agent"]["folder"] += 1
    assert told.table() == [
        "| fault | S3 | folder | all |",
        "| --- | --- | --- | --- |",
        "| agent | 0 | 1 | 1 |",
        "| slow | 2 | 0 | 2 |",
    ]
