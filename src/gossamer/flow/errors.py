"""The error tree of the machine room, on one page.

`FlowError` is the root. Each class is a situation that a caller treats differently; the message says what happened,
to what, and what to do.
"""


class FlowError(Exception):
    """Root of the machine room's errors. `exit_code` is what a command ends with when a person caused it."""

    exit_code: int = 1


class WiringError(FlowError):
    """The plan cannot be run as written. Says the file, the key, what is wrong and what would be right."""

    exit_code = 2


class BrokenWiring(WiringError):
    """The file of a plan cannot be read as one: it is missing, cut, or no TOML."""


class SettingError(FlowError):
    """A property of a sheet cannot take this value, or not while the unit runs."""

    exit_code = 2


class UnknownName(WiringError):
    """A name that nothing is registered under; lists the known ones."""


class ConnectorError(FlowError):
    """Root of what can go wrong at a connector's ends."""


class WrongItem(ConnectorError):
    """An item of the wrong type was offered. The sender's fault; the connector is unharmed."""


class Closed(ConnectorError):
    """This end was closed, by us; nothing can be sent or received through it any more."""


class EndOfItems(ConnectorError):
    """Every producer has closed and every item has been received: the normal end of a stream."""


class RemoteRefused(ConnectorError):
    """The other side of a remote connector refused us: wrong secret, wrong item type, unknown connector."""


class BrokenFrame(ConnectorError):
    """What came over a remote link is not a frame of ours. The connection is dropped before anything is allocated."""


class ComponentFailed(FlowError):
    """A component raised and its policy says stop, or it kept raising. Names the component and what it held.

    What was being done ended before its end (4); what was kept before is kept.
    """

    exit_code = 4
