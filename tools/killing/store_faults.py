"""Stores and clocks that campaigns let fail, outside of the crawl, whose program is as people run it.

Place in the flow: :mod:`stores` gives each crawl one of these stores. One is a folder, on a disk of its own where the user is root:
a disk in memory, which is full as soon as it is made smaller. The other one is a server of S3, moto, in this process: it stops to
listen, waits before each answer, or answers that it has no room. A clock is that of one process: its Python says another time.
"""

import contextlib
import os
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gossamer.engine import processes

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

#: Bytes of the disk of a store.
_DISK = 1 << 30

#: The answer of a server that has no room.
_NO_ROOM = b"<Error><Code>InsufficientStorage</Code><Message>The disk of this server is full.</Message></Error>"

#: Where a process finds its clock: Python runs a module of this name as it begins.
_CLOCK = """
import os, time

_folder, _time, _time_ns, _now = os.path.dirname(__file__), time.time, time.time_ns, time.monotonic
_seen = [0.0, 0.0]

def _apart():
    if _now() > _seen[1]:
        _seen[1] = _now() + 0.05
        try:
            with open(f"{_folder}/{os.getpid()}") as file:
                _seen[0] = float(file.read() or 0)
        except FileNotFoundError:
            _seen[0] = 0.0
    return _seen[0]

time.time = lambda: _time() + _apart()
time.time_ns = lambda: _time_ns() + int(_apart() * 1e9)
"""


class StoreOnDisk:
    """A folder."""

    word = "folder"

    def __init__(self, disk: Path) -> None:
        self._disk, self._store = disk, disk / "store"
        self.name = str(self._store)
        """As the crawl knows it."""
        self._is_own = os.geteuid() == 0
        self.faults = frozenset({"store", "full"}) if self._is_own else frozenset({"store"})

    def __enter__(self) -> "StoreOnDisk":
        self._disk.mkdir()
        if self._is_own:
            self._mount(f"size={_DISK}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own:
            subprocess.run(["umount", "--lazy", str(self._disk)], check=True)

    def _mount(self, options: str) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "gossamer", str(self._disk)], check=True)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """The disk is away while the block runs."""
        away = self._store.with_name("away")
        self._store.rename(away)
        yield
        away.rename(self._store)

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """The disk has no room while the block runs."""
        self._mount(f"remount,size={shutil.disk_usage(self._disk).used or 1}")  # 0 would be without a limit
        yield
        self._mount(f"remount,size={_DISK}")


class StoreOfServer:
    """A bucket; the environment of this process names its server."""

    word, faults = "S3", frozenset({"store", "full", "slow"})

    def __init__(self, bucket: str) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self.name, self._bucket = f"s3://{bucket}/store", bucket
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._one_at_a_time = threading.Lock()  # moto compares and replaces in two steps
        self._port, self._wait, self._is_full = 0, 0.0, False

    def __enter__(self) -> "StoreOfServer":
        self._listen()
        url = f"http://127.0.0.1:{self._port}"
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
        os.environ.update(keys, AWS_ENDPOINT_URL=url)
        for method, path in (
            ("POST", "moto-api/reset"),
            ("PUT", self._bucket),
        ):  # objects of the last crawl take memory
            urllib.request.urlopen(urllib.request.Request(f"{url}/{path}", method=method)).close()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _listen(self) -> None:
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Handler(WSGIRequestHandler):
            protocol_version = "HTTP/1.0"  # no connection outlives a request, so none outlives the server

            def log(self, *_: Any) -> None:
                """Tell nothing."""

        self._server = make_server("127.0.0.1", self._port, self._answer, threaded=True, request_handler=Handler)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: dict[str, Any], start: "StartResponse") -> Iterable[bytes]:
        time.sleep(self._wait)
        if self._is_full and request["REQUEST_METHOD"] == "PUT":
            request["wsgi.input"].read(int(request["CONTENT_LENGTH"]))
            start("507 Insufficient Storage", [("Content-Length", str(len(_NO_ROOM)))])
            return [_NO_ROOM]
        with self._one_at_a_time:
            return list(self._moto(request, start))

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """The server does not listen while the block runs."""
        self._close()
        yield
        self._listen()

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """The server has no room while the block runs."""
        self._is_full = True
        yield
        self._is_full = False

    @contextlib.contextmanager
    def slow(self, wait: float) -> Iterator[None]:
        """The server waits for so many seconds before each answer while the block runs."""
        self._wait = wait
        yield
        self._wait = 0.0


class Clocks:
    """The clocks of processes that were begun with an environment of this kind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(_CLOCK)

    def environment(self) -> dict[str, str]:
        found = processes.environment()
        path = [str(self._folder), *filter(None, [found.get("PYTHONPATH")])]
        return {**found, "PYTHONPATH": os.pathsep.join(path)}

    def move(self, process: int, seconds: float) -> None:
        """Let the clock of a process jump; its successor has the right one."""
        fresh = self._folder / f"{process}.new"
        fresh.write_text(str(seconds))
        fresh.rename(self._folder / str(process))
