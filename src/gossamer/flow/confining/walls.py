"""All layers in order, and the proof that they hold: doors are tried before anybody relies on them.

Place in the flow: a process that has imported what it needs calls :func:`confine` once, and tells its parent what came of it.
"""

import contextlib
import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from gossamer.flow.confining.landlock import restrict
from gossamer.flow.confining.namespaces import become_nobody, empty_directory, leave_network

Layer = Literal["limits", "namespaces", "landlock"]
LAYERS: tuple[Layer, ...] = ("limits", "namespaces", "landlock")

#: Landlock from this version on keeps TCP shut; with no new descriptors, no other socket can be made either.
_TCP_SINCE = 4

#: Files that everybody may read who may read any.
_READABLE = ("/etc/passwd", "/etc/hosts", "/proc/self/status", "/bin/sh", "/usr/bin/env")


class Walls(msgspec.Struct, frozen=True):
    """What keeps a process in."""

    files: tuple[str, ...] = ()
    """Layers that keep it from files, each proved."""
    network: tuple[str, ...] = ()
    """Layers that keep it from the network, each proved."""
    missing: tuple[str, ...] = ()
    """Layers that this machine lacks, and why."""

    @property
    def is_whole(self) -> bool:
        """Files and network are shut by something beside limits."""
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

    held = _address_space()
    put_up("an identity of its own", become_nobody)
    if "namespaces" in layers and put_up("namespaces", lambda: leave_network(empty_directory())):
        files.append("an empty root")
        network.append("a network of its own")
    if "landlock" in layers and (version := put_up("Landlock", restrict)):
        files.append(f"Landlock {version}")
        if isinstance(version, int) and version >= _TCP_SINCE and "limits" in layers:
            network.append("Landlock and no new descriptors")
    if _opens_files():
        files.clear()
        missing.append("files are open in spite of them")
    if "limits" in layers:
        put_up("limits", lambda: _limit_all(held + memory, seconds))
        if _opens_sockets():
            network.clear()
            missing.append("sockets can be made")
    elif network and _has_interfaces():
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


def _address_space() -> int:
    """Bytes of address space that the process has; what it needs to run at all where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    except OSError:
        return 1 << 30
    return pages * resource.getpagesize()


def _opens_files() -> bool:
    for path in _READABLE:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            return True
    with contextlib.suppress(OSError):
        return bool(os.listdir("/"))  # noqa: PTH208  # the names alone, without a descriptor that stays
    return False


def _opens_sockets() -> bool:
    with contextlib.suppress(OSError):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
        return True
    return False


def _has_interfaces() -> bool:
    """Whether there is a network interface beside a loopback of one's own."""
    with contextlib.suppress(OSError):
        return len(socket.if_nameindex()) > 1
    return False
