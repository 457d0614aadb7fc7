"""Servers of S3 for tests: one that obeys conditions, in a process of its own, and one of ours that ignores them."""

import contextlib
import hashlib
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Seconds that the server may take to begin, on a busy machine.
PATIENCE = 60

BUCKET = "crawls"


def variables(url: str) -> dict[str, str]:
    """The environment by which a store finds the server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "hushhush",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """A server that obeys conditions, with one bucket; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    # Its own messages would be errors of our tests.
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(f"{url}/{BUCKET}", method="PUT")).close()
                break
            except OSError:
                assert server.poll() is None, "the server of S3 has ended"
                assert time.monotonic() < until, "the server of S3 does not begin"
                time.sleep(0.1)
        yield url
    finally:
        server.kill()
        server.wait()


class _Careless(BaseHTTPRequestHandler):
    """Keeps objects, and ignores If-None-Match and If-Match as some servers do: it overwrites, and answers 200."""

    objects: dict[str, bytes]
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b"")

    def do_GET(self) -> None:
        found = self.objects.get(self.path)
        self._answer(404 if found is None else 200, found or b"")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b'<?xml version="1.0"?><DeleteResult></DeleteResult>')

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("ETag", f'"{hashlib.md5(self.objects.get(self.path, b"")).hexdigest()}"')
        self.send_header("Last-Modified", "Fri, 27 Nov 2026 10:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Tell nobody."""


class _Denying(_Careless):
    """Lets people read, and nothing else."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")


def careless_server() -> contextlib.AbstractContextManager[str]:
    """A server that ignores conditions; gives its URL."""
    return _server(_Careless)


def denying_server() -> contextlib.AbstractContextManager[str]:
    """A server that may be read and not be written; gives its URL."""
    return _server(_Denying)


@contextlib.contextmanager
def _server(kind: type[_Careless]) -> Iterator[str]:
    handler = type("Handler", (kind,), {"objects": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
