"""How much of a body is kept, and where: what the sheet of a protocol module says, for whoever takes bytes in."""

import msgspec


class Keeping(msgspec.Struct, frozen=True):
    """The bounds of one body."""

    room: int
    """Bytes at most, as sent and decoded."""
    memory: int
    """Bytes above which it goes to disk."""
    directory: str = ""
    """Where on disk; empty: the system's directory for temporary files."""


NOTHING = Keeping(0, 0)
