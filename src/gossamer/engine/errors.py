"""The error tree of the engine, on one page.

`FlowError` is the root. Each class is a situation that a caller treats differently; the message says what happened,
to what, and what to do.
"""


class FlowError(Exception):
    """Root of the engine's errors. `exit_code` is what a command ends with when a person caused it."""

    exit_code: int = 1


class WiringError(FlowError):
    """The wiring cannot be run as written. Names the file and the key, and says how to mend it."""

    exit_code = 2


class BrokenWiring(WiringError):
    """The file of a wiring is missing, cut, or no TOML."""


class SettingError(FlowError):
    """A setting of a unit cannot take this value, or cannot change while the unit runs."""

    exit_code = 2


class UnknownName(WiringError):
    """Nothing is registered under this name. Lists the known names."""


class ConnectorError(FlowError):
    """Root of the errors at a connector's ends."""


class WrongItem(ConnectorError):
    """An item of the wrong type was offered. The sender's fault; the connector is unharmed."""


class Closed(ConnectorError):
    """This process closed this end of a connector, so nothing can be sent or received through it."""


class EndOfItems(ConnectorError):
    """Every producer has closed and every item has been received: the normal end of a stream."""


class RemoteRefused(ConnectorError):
    """The other side of a remote connector refused us: wrong secret, wrong item type, unknown connector."""


class BrokenFrame(ConnectorError):
    """Bytes that came over a remote link are no frame of this protocol. The connection is dropped before memory is
    allocated."""


class ComponentFailed(FlowError):
    """A component raised an error and its policy is to stop, or it raised too often. Names the component and its items.

    The crawl ends incomplete (4), and keeps everything that it had kept before.
    """

    exit_code = 4
