"""Zstandard (RFC 8878), from the standard library where that has it (Python 3.14), otherwise from its backport.

Place in the flow: bodies that servers send in this coding, and messages between machines, pass through it. Both are one
module by the same authors; :data:`zstd` is the one that the Python at hand has.
"""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]
