"""The web is for this machine alone, also where it listens on all of 127.0.0.0/8."""

import asyncio
from typing import cast

import pytest

from gossamer.simweb import SimWeb
from gossamer.simweb.protocol import Connection, Shared


class Wire:
    """A transport that only knows where it was accepted, and whether it was aborted."""

    def __init__(self, address: str) -> None:
        self.address, self.aborted = address, False

    def get_extra_info(self, _: str) -> tuple[str, int]:
        return self.address, 80

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(("address", "refused"), [("127.0.0.1", False), ("127.128.0.9", False), ("192.0.2.1", True)])
def test_a_connection_from_outside_is_refused(address: str, refused: bool) -> None:
    wire = Wire(address)
    connection = Connection(Shared(SimWeb(), None, 0.0, local_only=True), "http")
    connection.connection_made(cast(asyncio.Transport, wire))
    assert wire.aborted is refused
