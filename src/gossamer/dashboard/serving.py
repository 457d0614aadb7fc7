"""The dashboard's process: where it listens, and when it ends.

Place in the flow: `gossamer dashboard` calls :func:`serve`; `gossamer crawl --dashboard` starts `python -m gossamer.dashboard`,
whose standard input ends with the crawl, and so does it.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from gossamer.dashboard.app import application
from gossamer.dashboard.crawls import Crawls
from gossamer.dashboard.guarding import Guard
from gossamer.dashboard.keys import keys_file, read_keys
from gossamer.dashboard.listening import Listening
from gossamer.dashboard.replays import Replays
from gossamer.dashboard.sites import folders, sites_file
from gossamer.operations.hosting.hurrying import HurriedProtocol
from gossamer.operations.listening import listening_socket

#: Connections at once: some browsers, each with several.
MAX_CONNECTIONS = 256

#: Bytes of the head of a request.
MAX_HEAD = 32_768

#: Seconds that open streams have to end when the dashboard does.
GRACE = 2


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
        guard = Guard(app, keys, port, name=listening.name, scheme=listening.scheme, is_given=replays.is_given)
        server = uvicorn.Server(
            uvicorn.Config(
                guard,
                log_level="critical",
                access_log=False,
                http=HurriedProtocol,
                ws="none",
                server_header=False,
                date_header=False,
                proxy_headers=False,
                limit_concurrency=MAX_CONNECTIONS,
                h11_max_incomplete_event_size=MAX_HEAD,
                timeout_graceful_shutdown=GRACE,
                ssl_certfile=listening.certificate or None,
                ssl_keyfile=listening.key or None,
            )
        )
        name = f"[{listening.name}]" if ":" in listening.name else listening.name
        address = f"{listening.scheme}://{name}:{port}/?token="
        tell(address + keys.full, address + keys.read)
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn ends gracefully, and raises it after
            asyncio.run(_serve(server, bound, is_child=is_child))


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
