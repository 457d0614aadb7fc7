"""Runs the SPARQL server of Oxigraph for tests of remote triple stores.

Place in the flow: tests and the kill loop of triples feed it over HTTP and query it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

#: The server's program; None where it is not installed.
PROGRAM = shutil.which("oxigraph", path=str(Path(sys.executable).parent))

#: Seconds in which it has to answer after its start, and to answer a question.
_START, _ANSWER = 30.0, 60.0


class TripleServer:
    """Oxigraph's server on loopback. Its folder keeps its triples while the server is down."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<TripleServer {self.update}>"

    @property
    def update(self) -> str:
        """The URL that takes SPARQL updates."""
        return f"http://127.0.0.1:{self._port}/update"

    def start(self) -> None:
        """Start the server, unless it runs.

        Raises:
            TimeoutError: the server does not answer.
        """
        if self._process is not None:
            return
        assert PROGRAM is not None, "Oxigraph's server is not installed"
        command = [PROGRAM, "serve", "--location", str(self._folder), "--bind", f"127.0.0.1:{self._port}"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        patience = time.monotonic() + _START
        while time.monotonic() < patience:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return
            time.sleep(0.05)  # it is a real process, which has no other way to say that it listens
        raise TimeoutError("the server does not start")

    def kill(self) -> None:
        """Kill the server, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def ask(self, query: str) -> list[dict[str, str]]:
        """Return the solutions of a query, each as the texts of its terms by variable."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER)) as connection:
            fields = {"Accept": "application/sparql-results+json"}
            connection.request("GET", f"/query?{urlencode({'query': query})}", headers=fields)
            rows = json.loads(connection.getresponse().read())["results"]["bindings"]
        return [{name: term["value"] for name, term in row.items()} for row in rows]
