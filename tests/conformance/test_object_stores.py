"""Every kind of store keeps the promises of `stores.contract`, and one that ignores conditions is refused."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.s3 import BUCKET, careless_server, denying_server, s3_server, variables

from gossamer.backup.contract import ABSENT, ObjectChanged, Store, StoreFailed, StoreRefused
from gossamer.backup.opening import FolderStore, open_store, probe
from gossamer.backup.options import JOINED
from gossamer.testing.storage import check_store


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture(params=["folder", "copies", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "folder":
        return open_store(f"folder:{tmp_path / 'store'}", is_new=True)
    if request.param == "copies":
        return open_store(f"{tmp_path / 'one'}{JOINED}{tmp_path / 'other'}", is_new=True)
    for name, value in variables(request.getfixturevalue("server")).items():
        monkeypatch.setenv(name, value)
    return open_store(f"s3://{BUCKET}/{tmp_path.name}")


def test_a_store_keeps_its_promises(store: Store) -> None:
    check_store(store)


def test_a_store_that_obeys_conditions_passes_the_probe_which_leaves_nothing(store: Store) -> None:
    told, odd = probe(store)
    assert told > 0
    assert odd == ""
    assert list(store.list("probes/")) == []


def test_a_process_that_is_suspended_while_it_replaces_an_object_blocks_no_one_and_loses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = FolderStore(tmp_path / "store", is_new=True), FolderStore(tmp_path / "store")
    store.put("a", b"0", ABSENT)
    expected, link, replaced = store.put("a", b"1", store.stat("a").tag), os.link, list[bytes]()

    def suspended(fresh: Path, path: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        for data in replaced:
            other.put("a", data, other.stat("a").tag)
        link(fresh, path)

    for replaced in ([b"2"], [b"3", b"4", b"5"]):
        monkeypatch.setattr(os, "link", suspended)
        with pytest.raises(ObjectChanged):
            store.put("a", b"late", expected)
        assert store.get("a") == replaced[-1]
        expected = store.stat("a").tag
    store.put("a", b"6", expected)
    assert store.get("a") == b"6"
    assert len(list((tmp_path / "store" / ".a").iterdir())) == 1, "what was replaced is gone"


def test_a_folder_in_which_objects_were_replaced_under_a_lock_is_a_store_still(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("123")
    (tmp_path / "a").write_bytes(b"old")
    store = FolderStore(tmp_path)
    data, seen = store.read("a")
    assert data == b"old"
    store.put("a", b"new", seen.tag)
    assert store.get("a") == b"new"
    with pytest.raises(ObjectChanged):
        store.put("a", b"late", seen.tag)
    store.put("a", b"whatever is there")
    assert store.get("a") == b"whatever is there"


def test_a_store_that_ignores_conditions_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with careless_server() as url:
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StoreFailed, match=r"ignores conditions: it overwrites .*use another store") as refused:
            probe(open_store("s3://crawls/x"))
    assert "\n" not in str(refused.value)


def test_a_store_that_cannot_be_reached_or_has_no_bucket_is_told_in_one_line_without_secrets(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables(server).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreRefused, match="NoSuchBucket: ") as refused:
        probe(open_store("s3://nowhere/x"))
    assert "\n" not in str(refused.value)
    assert "hushhush" not in str(refused.value)


def test_a_server_that_denies_or_does_not_answer_is_told_with_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(url: str, *, denies: bool = False) -> str:
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StoreFailed) as error:
            probe(open_store("s3://crawls/x", patience=0.5))
        assert isinstance(error.value, StoreRefused) == denies
        return str(error.value)

    with denying_server() as url:
        assert refused(url, denies=True).endswith(
            "x: AccessDenied: Access Denied; give keys that may read, write and delete there"
        )
    assert refused("http://127.0.0.1:1").endswith("x: http://127.0.0.1:1 cannot be reached: Connection refused")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert refused(f"http://127.0.0.1:{silent.getsockname()[1]}").endswith("cannot be reached: it does not answer")
