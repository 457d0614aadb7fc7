"""How the name of a store becomes a store that can be trusted."""

import contextlib
import secrets
import time
from pathlib import Path
from urllib.parse import urlsplit

from gossamer.engine.sheet import show_seconds
from gossamer.stores.contract import ABSENT, ObjectChanged, Store, StoreFailed
from gossamer.values.errors import UsageError

#: Schemes of stores in a cloud.
CLOUDS = ("s3", "gs", "az")

#: Stands before the name of a folder, where people want to say that it is one.
_FOLDER = "folder:"

#: Seconds by which the clock of a store may differ before that is told. It has no effect.
_ODD_CLOCK = 600.0


def store_name(text: str) -> str:
    """The name of a store as it is kept: a folder by its absolute path. Nothing is opened.

    Raises:
        UsageError: it is none, or holds a secret, which would stand in files that others read.
    """
    scheme, colon, _ = text.partition("://")
    if not colon:
        path = text.removeprefix(_FOLDER)
        if not path:
            raise UsageError(f"--store {text!r} names no folder; write folder:PATH")
        return str(Path(path).absolute())
    if scheme not in CLOUDS:
        raise UsageError(f"--store {scheme}://...: there is no store of this kind; use s3://, gs://, az:// or a folder")
    parts = urlsplit(text)
    if parts.username or parts.password or "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"--store {scheme}://...: a store's URL has a bucket and a path alone; give keys in the environment"
        )
    if not parts.netloc:
        raise UsageError(f"--store {text}: name a bucket, as {scheme}://bucket/example")
    return text.rstrip("/")


def open_store(name: str, *, is_new: bool = False) -> Store:
    """Open a store, or with `is_new` begin one; a server is asked nothing.

    Raises:
        UsageError: it is none, or the package that it takes is not installed.
        StoreFailed: its folder cannot be made.
    """
    name = store_name(name)
    if "://" in name:
        from gossamer.stores.cloud import CloudStore

        return CloudStore(name)
    from gossamer.stores.folder import FolderStore

    return FolderStore(Path(name), is_new=is_new)


def probe(store: Store) -> tuple[float, str]:
    """Prove that the store obeys conditions: servers that ignore them in silence would let two owners work.

    Returns:
        The time by the clock of the store, and a line for people where that clock is far from ours, else nothing.

    Raises:
        StoreFailed: it ignores them, or cannot be written.
    """
    key = f"probes/{secrets.token_hex(8)}"
    tag = store.put(key, b"1", ABSENT)
    try:
        _must_refuse(store, key, ABSENT, "overwrites an object that was only to be made")
        store.put(key, b"3", tag)
        _must_refuse(store, key, tag, "replaces an object that has changed")
        told = store.stat(key).modified
    except ObjectChanged:
        raise StoreFailed(f"the store {store.name} refuses to replace an object that has not changed") from None
    finally:
        with contextlib.suppress(StoreFailed):  # an owner need not be allowed to delete
            store.delete([key])
    apart = abs(told - time.time())
    odd = f"the clock of {store.name} is {show_seconds(apart)} from this machine's; that has no effect"
    return told, odd if apart > _ODD_CLOCK else ""


def _must_refuse(store: Store, key: str, expect: str, wrong: str) -> None:
    try:
        store.put(key, b"2", expect)
    except ObjectChanged:
        return
    raise StoreFailed(
        f"the store {store.name} ignores conditions: it {wrong}, so two processes could own the crawl; use another store"
    )
