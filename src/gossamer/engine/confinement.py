"""Confinement: a process of ours that reads the documents of strangers gives up files, network and privileges for good.

Place in the flow: such a process imports what it needs, calls :func:`confine` once, and tells its parent what came of it.
There are two layers, Landlock and namespaces, and a proof: the process tries the doors itself before it relies on them.
"""

import contextlib
import ctypes
import os
import resource
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

# -- Landlock: no files and no TCP ports. Linux 5.13 and newer; it needs no privilege.
# The three system calls have no wrapper in the C library, so they go by number. Rights that a kernel does not know are not
# asked for (`man 7 landlock`, "Rules", with the version of the interface in which each right came).

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
    if not sys.platform.startswith("linux"):
        return 0
    found: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(0, found)


def restrict() -> int:
    """Give up everything that this kernel's Landlock can take, in this thread and in all that it starts; the version. Raises
    OSError: there is no Landlock here, or it refuses."""
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
    # No program that is started from now on gains a privilege.
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise _error()
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    if ruleset < 0:
        raise _error()
    try:
        if libc.syscall(_RESTRICT_SELF, ruleset, 0):
            raise _error()
    finally:
        os.close(ruleset)
    return version


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


# -- namespaces: no network, files and privileges of the machine. Linux, where unprivileged users may make them.

#: `CLONE_...` of `man 2 unshare`: mounts, host name, System V objects, users, network.
_MOUNTS, _HOST_NAME, _OBJECTS, _USERS, _NETWORK = 0x0002_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x4000_0000

_DROP_FROM_BOUND = 24
_MORE_CAPABILITIES_THAN_ANY_KERNEL = 64
_CAPABILITY_VERSION = 0x2008_0522

#: The user `nobody`, as every system numbers it that has Python.
NOBODY = 65_534


def empty_directory() -> int:
    """A descriptor of a directory that has no name any more, so that no process can put anything into it. Raises OSError:
    none can be made."""
    path = Path(tempfile.mkdtemp(prefix="gossamer-nothing-"))
    try:
        path.chmod(0o555)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        path.rmdir()


def become_nobody() -> None:
    """Leave root's identity, where the process has it. Raises OSError: the system refuses."""
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
    libc = _libc()
    try:
        if libc.unshare(_USERS | _NETWORK | _OBJECTS | _HOST_NAME | _MOUNTS):
            raise _error()
        os.fchdir(root)
        os.chroot(".")
        os.chdir("/")
    finally:
        os.close(root)
    # Keep no capability of those that a new namespace gives.
    for one in range(_MORE_CAPABILITIES_THAN_ANY_KERNEL):
        libc.prctl(_DROP_FROM_BOUND, one, 0, 0, 0)
    head, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(ctypes.byref(head), ctypes.byref(nothing)):
        raise _error()
    return True


Layer = Literal["limits", "namespaces", "landlock"]
LAYERS: tuple[Layer, ...] = ("limits", "namespaces", "landlock")

#: Landlock from this version on keeps TCP shut; with no new descriptors, no other socket can be made either.
_LIMITS_TCP_SINCE = 4

#: Files that any reader of files may read.
_READABLE = ("/etc/passwd", "/etc/hosts", "/proc/self/status", "/bin/sh", "/usr/bin/env")


class Walls(msgspec.Struct, frozen=True):
    """The walls around a process."""

    files: tuple[str, ...] = ()
    """Layers that keep it from files, each proved."""
    network: tuple[str, ...] = ()
    """Layers that keep it from the network, each proved."""
    missing: tuple[str, ...] = ()
    """Layers that this machine lacks, and why."""

    @property
    def is_whole(self) -> bool:
        return bool(self.files and self.network)

    def __str__(self) -> str:
        held = "; ".join(
            f"no {name} by {' and '.join(layers)}"
            for name, layers in (("files", self.files), ("network", self.network))
            if layers
        )
        return "; ".join(filter(None, (held, *(f"missing: {one}" for one in self.missing)))) or "nothing"


def confine(memory: int, seconds: int, layers: tuple[Layer, ...] = LAYERS) -> Walls:
    """Shut this process in for good; it keeps the descriptors that are open.

    Args:
        memory: bytes that it may take beside what it has.
        seconds: of processor time that it may take from now on.
        layers: to put up; all but for a test of one.

    Returns:
        The layers that hold. Nothing raises: a layer that cannot be put up is missing.
    """
    files: list[str] = []
    network: list[str] = []
    missing: list[str] = []

    def put_up(name: str, build: Callable[[], object]) -> object:
        try:
            return build()
        except (OSError, ValueError, AttributeError) as error:
            missing.append(f"{name} ({getattr(error, 'strerror', None) or error})")
            return None

    try:
        held = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        held = 1 << 30  # what it needs to run at all, where the system does not tell
    put_up("an identity of its own", become_nobody)
    if "namespaces" in layers and put_up("namespaces", lambda: leave_network(empty_directory())):
        files.append("an empty root")
        network.append("a network of its own")
    if "landlock" in layers and (version := put_up("Landlock", restrict)):
        files.append(f"Landlock {version}")
        if isinstance(version, int) and version >= _LIMITS_TCP_SINCE and "limits" in layers:
            network.append("Landlock and no new descriptors")
    if _opens_files():
        files.clear()
        missing.append("files are open in spite of them")
    if "limits" in layers:
        put_up("limits", lambda: _limit_all(held + memory, seconds))
        with contextlib.suppress(OSError):
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
            network.clear()
            missing.append("sockets can be made")
    elif network:
        with contextlib.suppress(OSError):
            if len(socket.if_nameindex()) > 1:
                network.clear()
                missing.append("the network is open in spite of them")
    return Walls(tuple(files), tuple(network), tuple(missing))


def _limit_all(space: int, seconds: int) -> None:
    """No new descriptors, processes, files or core dumps, and so much address space and processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime) + 1
    limits = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
        # The soft limit ends it by SIGXCPU, which says why; a second later it is killed.
        (resource.RLIMIT_CPU, spent + seconds, spent + seconds + 1),
        (resource.RLIMIT_AS, space, space),
        (resource.RLIMIT_NOFILE, 0, 0),
    ]
    for what, soft, hard in limits:
        _, highest = resource.getrlimit(what)
        most = max(soft, hard) if highest == resource.RLIM_INFINITY else highest
        resource.setrlimit(what, (min(soft, most), min(hard, most)))


def _opens_files() -> bool:
    for path in _READABLE:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            return True
    with contextlib.suppress(OSError):
        return bool(os.listdir("/"))  # noqa: PTH208  # the names alone, without a descriptor that stays
    return False
