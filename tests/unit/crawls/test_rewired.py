"""The changes of a graph are kept for later runs, as far as they fit the wiring that is found then."""

from pathlib import Path

import pytest

from gossamer.crawls.compiling import shipped
from gossamer.crawls.live import CHANGES, KEPT, read_changes, write_changes
from gossamer.engine.wiring import Difference, Wiring, changed

CACHE = (
    '[providers.recent]\nuse = "recently-seen"\nproviders = { behind = "seen" }\n'
    '[components.url-seen.providers]\nseen = "recent"\n'
)
PLAIN = '[connectors.checked]\naddress = "local:"\n'


def changes() -> tuple[list[Difference], Wiring]:
    first = shipped("default")
    second = changed(first, CACHE)
    third = changed(second, PLAIN)
    return [Difference.between(first, second), Difference.between(second, third)], third


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found, wiring = changes()
    write_changes(tmp_path, found)
    assert read_changes(tmp_path, wiring) == found
    write_changes(tmp_path, [])
    assert read_changes(tmp_path, wiring) == []


def test_a_change_that_a_kill_kept_from_the_wiring_is_left_out(tmp_path: Path) -> None:
    first = shipped("default")
    plain = changed(first, PLAIN)
    cached = changed(plain, CACHE)
    write_changes(tmp_path, [Difference.between(first, plain), Difference.between(plain, cached)])
    assert read_changes(tmp_path, plain) == [Difference.between(first, plain)]


@pytest.mark.parametrize(
    "text", [b"", b"[[", b"{}", b'[[{"table": "x", "name": "y"}]]', b'[[{"table": "providers", "name": 1}]]']
)
def test_a_file_that_is_no_list_of_changes_counts_as_none(text: bytes, tmp_path: Path) -> None:
    (tmp_path / CHANGES).parent.mkdir()
    (tmp_path / CHANGES).write_bytes(text)
    assert read_changes(tmp_path, shipped("default")) == []


def test_no_more_than_so_many_are_kept_and_a_crawl_that_nobody_rewires_has_no_file(tmp_path: Path) -> None:
    write_changes(tmp_path, [])
    assert not (tmp_path / CHANGES).exists()
    write_changes(tmp_path, [Difference()] * (KEPT + 1))
    assert len(read_changes(tmp_path, shipped("default"))) == KEPT
