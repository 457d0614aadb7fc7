"""Landlock: a process gives up all files and TCP ports for good. Linux 5.13 and newer; no privilege is needed.

The three system calls have no wrapper in the C library, so they go by number. Rights that a kernel does not know are not asked for
(`man 7 landlock`, "Rules", with the version of the interface in which each right came).
"""

import ctypes
import os
import sys

#: The numbers are the same on every architecture that Python's wheels exist for.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_ASK_VERSION = 1
_NO_NEW_PRIVILEGES = 38

#: Version of the interface -> how many rights to files it knows, counted from the lowest bit.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
#: To bind and to connect TCP sockets, from this version on.
_TCP, _TCP_SINCE = 0b11, 4
#: To reach abstract Unix sockets, and to send signals, of processes outside, from this version on.
_SCOPES, _SCOPES_SINCE = 0b11, 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


def landlock_version() -> int:
    """Version of the kernel's interface; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    found: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(0, found)


def restrict() -> int:
    """Give up everything that this kernel's Landlock can take, in this thread and in all that it starts; the version.

    Raises:
        OSError: there is no Landlock here, or it refuses.
    """
    version = landlock_version()
    if not version:
        raise OSError(0, "the kernel has no Landlock, or it is switched off")
    rights = _FILE_RIGHTS[min(version, max(_FILE_RIGHTS))]
    rules = _Ruleset((1 << rights) - 1)
    size = 8
    if version >= _TCP_SINCE:
        rules.network, size = _TCP, 16
    if version >= _SCOPES_SINCE:
        rules.scopes, size = _SCOPES, 24
    libc = _libc()
    give_up_new_privileges()
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    if ruleset < 0:
        raise _error()
    try:
        if libc.syscall(_RESTRICT_SELF, ruleset, 0):
            raise _error()
    finally:
        os.close(ruleset)
    return version


def give_up_new_privileges() -> None:
    """No program that is started from now on gains a privilege (`PR_SET_NO_NEW_PRIVS`).

    Raises:
        OSError: the kernel refuses.
    """
    if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise _error()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
