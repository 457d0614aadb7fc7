"""Servers that mean harm: the faults that a server can commit, one at each path, each with how a fetch of it has to end.

`server.CASES` is the one table behind the server, the test, `gossamer simweb --hostile` and docs/reference/hostile.md.
"""

from gossamer.simweb.hostile.case import HostileCase
from gossamer.simweb.hostile.server import CASES, NOT_PLAYED, HostileWeb

__all__ = ["CASES", "NOT_PLAYED", "HostileCase", "HostileWeb"]
