"""Namespaces: a process leaves the machine's network, its files and its privileges. Linux, where unprivileged users may do so."""

import ctypes
import os
import sys
import tempfile
from pathlib import Path

#: `CLONE_...` of `man 2 unshare`: mounts, host name, System V objects, users, network.
_MOUNTS, _HOST_NAME, _OBJECTS, _USERS, _NETWORK = 0x0002_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x4000_0000

_DROP_FROM_BOUND = 24
_MORE_CAPABILITIES_THAN_ANY_KERNEL = 64
_CAPABILITY_VERSION = 0x2008_0522

#: Nobody, as every system numbers it that has Python.
NOBODY = 65_534


def empty_directory() -> int:
    """A descriptor of a directory that has no name any more, so that nobody can put anything into it.

    Raises:
        OSError: none can be made.
    """
    path = Path(tempfile.mkdtemp(prefix="gossamer-nothing-"))
    try:
        path.chmod(0o555)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        path.rmdir()


def become_nobody() -> None:
    """Leave root's identity, where the process has it.

    Raises:
        OSError: the system refuses.
    """
    if os.getuid() == 0 or os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def leave_network(root: int) -> bool:
    """Have no network but a loopback that is down, and an empty directory as the root of all files.

    Args:
        root: a descriptor of the directory; it is closed.

    Returns:
        True: it has left.

    Raises:
        OSError: the kernel or a container forbids it, or a second thread runs.
    """
    if not sys.platform.startswith("linux"):
        os.close(root)
        raise OSError(0, "this system has no namespaces")
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        if libc.unshare(_USERS | _NETWORK | _OBJECTS | _HOST_NAME | _MOUNTS):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        os.fchdir(root)
        os.chroot(".")
        os.chdir("/")
    finally:
        os.close(root)
    _drop_capabilities(libc)
    return True


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Keep none of those that a new namespace gives."""
    for one in range(_MORE_CAPABILITIES_THAN_ANY_KERNEL):
        libc.prctl(_DROP_FROM_BOUND, one, 0, 0, 0)
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(ctypes.byref(head), ctypes.byref(nothing)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
