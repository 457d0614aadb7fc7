"""Which request some bytes are: one that ships, or one that an installed package offers.

Place in the flow: the control server reads each request here. Requests that ship are declared in :mod:`messages`, for people, and
in :mod:`agent_messages`, for a supervisor. A package offers its own by an entry point of the group :data:`GROUP`, and `gossamer
ask` sends these.
"""

import functools
import operator
from typing import Any

import msgspec

from gossamer.assembly.control import agent_messages, messages
from gossamer.assembly.control.wire import ControlRequest, Malformed, decoded, tag_of

#: Everything that ships and can be asked; a package may have declared requests of its own before.
REQUESTS: tuple[type[ControlRequest], ...] = tuple(
    one for one in ControlRequest.__subclasses__() if one.__module__ in (messages.__name__, agent_messages.__name__)
)

#: The entry point group by which installed packages offer requests of their own, by their tags.
GROUP = "gossamer.control"

_SHIPPED = frozenset(map(tag_of, REQUESTS))

_requests: msgspec.json.Decoder[Any] = msgspec.json.Decoder(functools.reduce(operator.or_, REQUESTS))


class _Tagged(msgspec.Struct, frozen=True):
    """Any request, as far as its name."""

    do: str


_tags = msgspec.json.Decoder(_Tagged)


def read_request(body: bytes) -> ControlRequest:
    """A request from its bytes: one that ships, or one of an installed package.

    Raises:
        Malformed: it is none; says what is wrong.
    """
    named: _Tagged = decoded(_tags, body)
    own = None if named.do in _SHIPPED else offered_request(named.do)
    decoder = _requests if own is None else msgspec.json.Decoder(own)
    request: ControlRequest = decoded(decoder, body)
    return request


def offered_request(name: str) -> type[ControlRequest] | None:
    """The request that an installed package offers under this name; None where none does.

    Raises:
        Malformed: what it offers is no request of this name, or cannot be loaded.
    """
    from gossamer.flow.installed import offered

    entry = next(iter(offered(GROUP, name)), None)
    if entry is None:
        return None
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise Malformed(f"request {name!r} cannot be loaded from {entry.value}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, ControlRequest)) or tag_of(found) != name:
        raise Malformed(f"{entry.value} is no request called {name!r}")
    return found
