"""The socket of a server of ours, bound before anything else begins, so that an address that is taken is one line.

Place in the flow: the dashboard and a runtime of mobile crawlers bind theirs here, and give it to uvicorn.
"""

import socket

from gossamer.values.errors import UsageError


def listening_socket(name: str, port: int, most: int) -> socket.socket:
    """A TCP socket that listens.

    Args:
        name: a name or address of this machine.
        port: 0 takes any that is free.
        most: connections that may wait. A client may be quicker than the server, so they wait for it.

    Raises:
        UsageError: nothing can listen there; says why.
    """
    try:
        info = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(info[0], socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(info[4])
            bound.listen(most)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise UsageError(f"cannot listen at {name}:{port}: {error.strerror or error}") from None
    return bound
