"""What an address means, and what is said of one that means nothing."""

from typing import Any

import pytest

from gossamer.engine.errors import UnknownName, WiringError
from gossamer.engine.local import FusedConnector, LocalConnector
from gossamer.engine.remote.connector import RemoteConnector
from gossamer.engine.remote.links import Exchange
from gossamer.engine.transports import Opening, known_schemes, open_connector


def opened(address: str, **more: Any) -> Any:
    return open_connector(Opening(name="words", item_type=str, address=address, exchange=Exchange({}), **more))


def test_schemes_have_their_connectors() -> None:
    assert type(opened("local:", capacity=7)) is LocalConnector
    assert type(opened("fused:")) is FusedConnector
    assert type(opened("unix:run/s", side="send", options={"batch": 10})) is RemoteConnector
    assert known_schemes() == ["fused", "local", "peer", "priority", "tcp", "unix"]


@pytest.mark.parametrize(
    ("address", "more", "message"),
    [
        ("unis:run/s", {}, "did you mean 'unix'"),
        ("carrier-pigeon:x", {}, "known: fused, local, peer, priority, tcp, unix"),
        ("local", {}, "has no scheme"),
        ("local:x", {}, "write local:"),
        ("priority:", {}, "write priority:FIELD"),
        ("priority:speed", {}, "have no field 'speed'"),
        ("unix:", {}, "write unix:PATH"),
        ("tcp:localhost", {}, "write tcp:HOST:PORT"),
        ("local:", {"side": "send"}, "both ends in one process"),
        ("local:", {"options": {"batch": 1}}, "unknown setting 'batch'"),
        ("unix:s", {"options": {"batch": 0}}, "'words'.*'batch' cannot be 0"),
        ("unix:s", {"options": {"listen": "nobody"}}, "'listen'"),
    ],
)
def test_an_address_that_does_not_do_says_what_would(address: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(WiringError, match=message):
        opened(address, **more)


def test_an_unknown_scheme_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName):
        opened("carrier-pigeon:x")
