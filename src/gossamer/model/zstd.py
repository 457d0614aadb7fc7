"""Zstandard (RFC 8878), from the standard library where that has it (Python 3.14), otherwise from its backport.

Both are one module by the same authors; :data:`zstd` is whichever the Python at hand has.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]
