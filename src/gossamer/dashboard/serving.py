"""The dashboard's process: where it listens, and when it ends.

Place in the flow: `gossamer dashboard` calls :func:`serve`. `gossamer crawl --dashboard` starts this module as a program, with the
crawl's directory and the address. The first line of its output is the address that opens it, or after a `!` the reason why there is
none. It ends when its standard input does, which the crawl holds.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import uvicorn

from gossamer.crawls.http_server import is_loopback, listening_socket, server
from gossamer.dashboard.app import application
from gossamer.dashboard.crawls import Crawls
from gossamer.dashboard.guarding import DashboardGuard, keys_file, read_keys
from gossamer.dashboard.questions import Replays
from gossamer.dashboard.sites import folders, sites_file
from gossamer.values.errors import GossamerError, UsageError


class Listening(msgspec.Struct, frozen=True):
    """The address of a dashboard."""

    name: str = "127.0.0.1"
    port: int = 0
    """0: a free one."""
    certificate: str = ""
    """A file with the chain of certificates, as PEM; with `key` the dashboard speaks TLS."""
    key: str = ""

    @property
    def scheme(self) -> str:
        """`https` with a certificate."""
        return "https" if self.certificate else "http"


def read_address(text: str, certificate: str = "", key: str = "", *, is_open: bool = False) -> Listening:
    """The address to listen at, as a person wrote it: empty, `PORT`, `HOST` or `HOST:PORT`.

    Raises:
        UsageError: it is no address, or one that others can reach, and neither TLS nor a word says that this is meant.
    """
    name, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon and text.isdigit():
        name, port = "", text
    elif not colon:
        name, port = text, ""
    if port and not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError(f"{text!r} is not an address to listen at; write HOST:PORT, as 127.0.0.1:8080")
    if bool(certificate) != bool(key):
        raise UsageError("a certificate and its key belong together; give both")
    found = Listening(name.strip("[]") or "127.0.0.1", int(port or 0), certificate, key)
    if not (is_loopback(found.name) or certificate or is_open):
        raise UsageError(
            f"{found.name} can be reached from other machines, and tokens would travel in the clear; "
            "give --certificate and --key, or use --without-tls"
        )
    return found


#: Connections at once: some browsers, each with several.
MAX_CONNECTIONS = 256

#: Bytes of the head of a request.
MAX_HEAD = 32_768


def serve(
    places: Sequence[Path], listening: Listening, tell: Callable[[str, str], None], *, is_child: bool = False
) -> None:
    """Serve until the process is told to end, by a signal or, as a child, by the end of its standard input.

    Args:
        places: directories of crawls, and folders that hold some.
        listening: where.
        tell: gets the address that opens everything, and the one that only shows, once it listens.
        is_child: it ends when its standard input does.

    Raises:
        UsageError: it cannot listen there, or its keys cannot be read.
    """
    keys = read_keys(keys_file())
    with listening_socket(listening.name, listening.port, MAX_CONNECTIONS) as bound:
        port = bound.getsockname()[1]
        crawls, replays = Crawls(places, lambda: folders(sites_file())), Replays()
        app = application(crawls, replays=replays)
        guard = DashboardGuard(app, keys, port, name=listening.name, scheme=listening.scheme, is_given=replays.is_given)
        serving = server(
            guard,
            most=MAX_CONNECTIONS,
            head=MAX_HEAD,
            certificate=listening.certificate or None,
            key=listening.key or None,
        )
        name = f"[{listening.name}]" if ":" in listening.name else listening.name
        address = f"{listening.scheme}://{name}:{port}/?token="
        tell(address + keys.full, address + keys.read)
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn ends gracefully, and raises it after
            asyncio.run(_serve(serving, bound, is_child=is_child))


async def _serve(server: uvicorn.Server, bound: socket.socket, *, is_child: bool) -> None:
    watch = asyncio.create_task(_until_parent_ends(server)) if is_child else None
    await server.serve(sockets=[bound])
    if watch is not None:
        watch.cancel()


async def _until_parent_ends(server: uvicorn.Server) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
    server.should_exit = True


def main(directory: str, address: str) -> int:
    """Serve one crawl until standard input ends; the exit status."""
    try:
        serve([Path(directory)], read_address(address), lambda full, read: print(full, flush=True), is_child=True)
    except GossamerError as error:
        print(f"!{error}", flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
