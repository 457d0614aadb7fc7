"""The connection of this process to a Ray cluster, and each reason in one line why there is none; tasks of functions that are
installed there; and commands on its nodes, which a command here follows: the supervisor of a crawl, and questions to one.

Place in the flow: the cluster that places agents (:mod:`gossamer.ray.cluster`) begins here. `gossamer reprocess --cluster ray`
calls :func:`mapped`. `gossamer crawl --cluster ray` and `gossamer resume` call :func:`run` in place of beginning a crawl. The same
command then runs on this node, in a detached actor (:class:`~gossamer.ray.host.CommandHost`), so that it goes on when this process,
its terminal or the program that has asked Ray for it is gone. Nothing of the crawl lives in that actor, and Ray never begins it
again. Each command of the command line takes `ray:NAME` for the directory of a crawl that is supervised so, and runs where that is.
"""

import contextlib
import os
import signal
import socket
import sys
import tempfile
import time
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from gossamer.agents.joined import link
from gossamer.documents.markdown import needs as needs_package
from gossamer.engine.files import scratch
from gossamer.engine.subjects import found_at
from gossamer.ray.host import ENVIRONMENT, INPUT, SUPERVISES, CommandHost, CommandSaid
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError

#: Names of actors are unique in it.
NAMESPACE = "gossamer"

#: The first Ray with tokens, without which every user who reaches a node may run programs there.
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
    """The first line of Ray's words on an error, without the rest of its report."""
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
            # So many wait here, whose answers are in Ray's object store.
            if len(begun) > ray.cluster_resources().get("CPU", 0):
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


# Commands on the nodes, which a command here follows.

#: Names of the actors that supervise a crawl begin with it.
_SUPERVISORS = "supervisor/"

#: Seconds in which an actor says which crawl it supervises, and between two questions.
_SAYS, _LOOK = 10.0, 0.5


class _Supervised(NamedTuple):
    """A crawl whose supervisor is in an actor."""

    directory: str
    """Empty where it has just begun."""
    node: str
    """The id of the node that has the directory."""
    host: str
    """The name of that node."""


def run(words: Sequence[str], crawl: str = "", *, given: bytes = b"") -> int | None:
    """Run a command of Gossamer on the cluster, and follow it; returns its exit status. None: this process is there already, and
    supervises a crawl.

    Args:
        words: those of the command.
        crawl: the crawl that `ray:NAME` among them is; empty for a command that is to supervise one.
        given: its standard input.

    Raises:
        UsageError: no cluster can be reached, or it has no such crawl.
        CrawlDirectoryError: the command has gone with its worker or its node.
    """
    if not crawl and SUPERVISES in os.environ:
        return None
    check_installed()
    environment = dict(os.environ)
    connect()
    import ray
    from ray.exceptions import RayError

    if crawl:
        found = _found(crawl)
        there = [found.directory if word == f"ray:{crawl}" else word for word in words]
        return _followed(_asked_for(found.node).remote(there), f"the command on {found.host}")
    name = f"{_SUPERVISORS}{os.urandom(4).hex()}"
    with scratch("gossamer-ray-") as folder:
        Path(folder, ENVIRONMENT).write_bytes(msgspec.json.encode({**environment, SUPERVISES: name}))
        Path(folder, INPUT).write_bytes(given)
        asked = _asked_for(ray.get_runtime_context().get_node_id(), name=name, lifetime="detached")
        host = asked.remote(list(words), folder, str(Path.cwd()))
        try:
            ray.get(host.ready.remote())
        except RayError as error:
            why = str(error).strip().splitlines()[-1]
            raise UsageError(f"Ray does not begin the supervisor on this node: {why}") from None
    host.outlive.remote()
    return _followed(host, "the supervisor")


def _asked_for(node: str, **more: str) -> Any:
    """An actor for a command on a node, which takes none of its processors."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return ray.remote(CommandHost).options(
        namespace=NAMESPACE,
        max_restarts=0,
        max_task_retries=0,
        num_cpus=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        **more,
    )


def _found(crawl: str) -> _Supervised:
    """The crawl of this name, or of this directory. Raises UsageError: there is none, or more than one."""
    until = time.monotonic() + _SAYS
    while True:
        known = list(_supervised())
        found = [one for one in known if crawl in (one.directory, Path(one.directory).name)]
        if found or all(one.directory for one in known) or time.monotonic() > until:
            break
        time.sleep(_LOOK)  # a supervisor that begins has not said yet what it supervises
    if len(found) == 1:
        return found[0]
    if found:
        told = " and ".join(f"{one.directory} on {one.host}" for one in found)
        raise UsageError(f"ray:{crawl} names several crawls; name one by its directory: {told}")
    there = ", ".join(f"ray:{Path(one.directory).name}" for one in known if one.directory)
    raise UsageError(
        f"no crawl called {crawl!r} has a supervisor on this Ray cluster; {f'there is {there}' if there else 'nor has another'}"
    )


def _supervised() -> Iterator[_Supervised]:
    import ray
    from ray.exceptions import RayError

    nodes = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    for entry in ray.util.list_named_actors(all_namespaces=True):
        if entry["namespace"] == NAMESPACE and entry["name"].startswith(_SUPERVISORS):
            with contextlib.suppress(ValueError, RayError):  # it has ended just now, or its node does not answer
                host = ray.get_actor(entry["name"], NAMESPACE)
                directory, node = ray.get([host.crawl.remote(), host.ready.remote()], timeout=_SAYS)
                yield _Supervised(directory, node, nodes.get(node, node))


def _followed(host: Any, name: str) -> int:
    """Print what a command says until it ends; signals that would end it here are sent there. A closed terminal ends this process
    alone. Raises CrawlDirectoryError."""
    import ray
    from ray.exceptions import RayError

    asked: list[int] = []
    for one in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(one) is not signal.SIG_IGN:
            signal.signal(one, lambda sent, _: asked.append(sent))
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    streams = (sys.stdout.buffer, sys.stderr.buffer)
    said = CommandSaid(0, [], None)
    while said.status is None:
        try:
            while asked:
                host.send.remote(asked.pop(0))
            said = ray.get(host.said.remote(said.number))
        except RayError:
            raise CrawlDirectoryError(
                f"{name} has gone with its worker of Ray or its node; gossamer resume goes on with a crawl"
            ) from None
        for is_error, piece in said.pieces:
            streams[is_error].write(piece)
            streams[is_error].flush()
    ray.kill(host)
    return said.status if said.status >= 0 else 128 - said.status
