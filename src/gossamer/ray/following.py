"""Commands on the nodes of a Ray cluster, which a command here follows: the supervisor of a crawl, and questions to one.

Place in the flow: `gossamer crawl --cluster ray` and `gossamer resume` call :func:`run` in place of beginning a crawl. The same
command then runs on this node, in a detached actor (:class:`~gossamer.ray.host.CommandHost`), so that it goes on when this process,
its terminal or the program that has asked Ray for it is gone. Nothing of the crawl lives in that actor, and Ray never begins it
again. Each command of the command line takes `ray:NAME` for the directory of a crawl that is supervised so, and runs where that is.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gossamer.engine.files import scratch
from gossamer.ray.connecting import NAMESPACE, check_installed, connect
from gossamer.ray.host import ENVIRONMENT, INPUT, SUPERVISES, CommandHost, CommandSaid
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Names of the actors that supervise a crawl begin with it.
_SUPERVISORS = "supervisor/"

#: Seconds in which an actor says which crawl it supervises, and between two questions.
_ANSWERS, _LOOK = 10.0, 0.5


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
    until = time.monotonic() + _ANSWERS
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
                directory, node = ray.get([host.crawl.remote(), host.ready.remote()], timeout=_ANSWERS)
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
