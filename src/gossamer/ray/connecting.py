"""The connection of this process to a Ray cluster, and each reason in one line why there is none; tasks of functions that are
installed there.

Place in the flow: the cluster that places agents (:mod:`gossamer.ray.cluster`) and the commands that follow others
(:mod:`gossamer.ray.following`) begin here. `gossamer reprocess --cluster ray` calls :func:`mapped`.
"""

import contextlib
import os
import socket
import sys
import tempfile
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, BinaryIO

from gossamer.agents.joined import link
from gossamer.documents.markdown import needs as needs_package
from gossamer.engine.files import scratch
from gossamer.engine.subjects import found_at
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError

#: Names of actors are unique in it.
NAMESPACE = "gossamer"

#: The first Ray with tokens, without which everybody who reaches a node may run programs there.
_OLDEST = (2, 52)

#: The variable by which Ray's own programs find a cluster.
_ADDRESS_VARIABLE = "RAY_ADDRESS"

#: Seconds in which a head of Ray takes a connection: it is a look at whether there is one.
_ANSWERS = 5.0


def check_installed() -> None:
    """Refuse to go on without Ray, or with one that is too old. Raises UsageError."""
    try:
        check_version(version("ray"))
    except PackageNotFoundError:
        check_version("")


def check_version(installed: str) -> None:
    """Refuse a version of Ray that is too old, or, if it is empty, that there is none. Raises UsageError."""
    if not installed:
        raise needs_package("ray", "Ray", "--cluster ray")
    if tuple(int(word) for word in installed.split(".")[:2]) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise UsageError(f"--cluster ray needs Ray {oldest} or newer, and this is {installed}; upgrade it")


def connect(wheels: Sequence[str] = ()) -> None:
    """Connect this process to the cluster that `RAY_ADDRESS` names, or that of this machine. Ray brings the code of these wheels to
    the machines that run something for this process. Raises UsageError: there is no cluster, it does not let this process in, or a
    file is no wheel."""
    import ray
    from ray.exceptions import AuthenticationError

    if ray.is_initialized():
        return
    address = os.environ.get(_ADDRESS_VARIABLE, "auto")
    if "://" in address:
        raise UsageError(
            f"{_ADDRESS_VARIABLE}={address}: begin the crawl on a node of the cluster, and name its head as HOST:PORT"
        )
    if address != "auto":
        try:
            socket.create_connection(link.host_and_port(address, _ADDRESS_VARIABLE), _ANSWERS).close()
        except OSError as error:
            raise UsageError(
                f"no Ray cluster answers at {address} ({error.strerror or error}); begin one with `ray start --head`, or set "
                f"{_ADDRESS_VARIABLE}"
            ) from None
    said = ""
    try:
        with _hushed() as told, _unpacked(wheels) as folder:
            code = {"working_dir": folder} if wheels else {}
            try:
                ray.init(address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False, runtime_env=code)
                # A thread of Ray writes its troubles to standard output, which has one line of JSON; there is no setting for it.
                ray._private.worker.global_worker.threads_stopped.set()
                ray._private.worker.global_worker.gcs_error_subscriber.close()  # it waits for one trouble before it looks
            finally:
                told.seek(0)
                said = told.read().decode("utf-8", "replace")
    except (AuthenticationError, ConnectionError, RuntimeError, ValueError) as error:
        if isinstance(error, AuthenticationError) or "InvalidAuthToken" in said:
            raise UsageError(
                "the Ray cluster wants its token, and has not got the right one; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN, or "
                "RAY_AUTH_TOKEN_PATH to the file that has it"
            ) from None
        if isinstance(error, ConnectionError) and address == "auto":
            raise UsageError(
                f"no Ray cluster runs on this machine; begin one with `ray start --head`, or set {_ADDRESS_VARIABLE} to HOST:PORT"
            ) from None
        raise UsageError(f"the Ray cluster at {address} does not take this process: {first_line(error)}") from None


@contextlib.contextmanager
def _unpacked(wheels: Sequence[str]) -> Iterator[str]:
    """A folder in which these wheels are as installed. Raises UsageError."""
    with scratch("gossamer-ray-") as folder:
        for wheel in wheels:
            try:
                with zipfile.ZipFile(wheel) as packed:
                    packed.extractall(folder)
            except (OSError, zipfile.BadZipFile) as error:
                raise UsageError(f"--agent-wheel {wheel} cannot be read as a wheel: {error}") from None
        yield folder


@contextlib.contextmanager
def _hushed() -> Iterator[BinaryIO]:
    """Keep what this process says on standard error for now: native threads of Ray tell every try there, and the reason why they
    fail nowhere else."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as told:
        try:
            os.dup2(told.fileno(), 2)
            yield told
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


def first_line(error: Exception) -> str:
    """What Ray says of an error, without the rest of its report."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def mapped(place: str, parts: Iterable[bytes]) -> Iterator[bytes]:
    """Call a function of an installed package, `module:function`, with each part, as a task of Ray that takes one processor; yields
    the answers in the order of the parts. One that is lost with its machine is begun again elsewhere. Raises what the function
    does, and UsageError: there is no cluster; CrawlDirectoryError: Ray cannot finish a task."""
    check_installed()
    with contextlib.chdir(os.sep):  # Ray puts this folder on the import path of its workers, which import what is ours
        connect()
    import ray
    from ray.exceptions import RayError, RayTaskError

    task = ray.remote(_called)
    begun = deque[Any]()
    try:
        for part in parts:
            begun.append(task.remote(place, part))
            if len(begun) > ray.cluster_resources().get(
                "CPU", 0
            ):  # so many wait here, whose answers are in Ray's object store
                yield ray.get(begun.popleft())
        while begun:
            yield ray.get(begun.popleft())
    except RayTaskError as error:
        raise (error.cause if isinstance(error.cause, GossamerError) else error) from None
    except RayError as error:
        raise CrawlDirectoryError(f"Ray cannot finish a part of the archive: {first_line(error)}") from None


def _called(place: str, part: bytes) -> bytes:
    answer: bytes = found_at(place)(part)
    return answer
