"""A simulated web to measure on, served beside the benchmark: the crawl has a processor to itself where there are two."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gossamer.bench.peers import pinned, source
from gossamer.model.errors import UsageError


@contextmanager
def simulated(pages: int, hosts: int, *settings: str) -> Iterator[int]:
    """Serve a simulated web on a free loopback port, on the last processor where there are several; gives the port.

    Raises:
        UsageError: it did not start.
    """
    command = [sys.executable, "-m", "gossamer", "simweb", "--port", "0", "--pages", str(pages), "--hosts", str(hosts)]
    command += [word for setting in settings for word in ("--set", setting)]
    with pinned(max):
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **source()})
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
        if found is None:
            raise UsageError(f"the simulated web did not start: {said.strip() or 'see above'}")
        yield int(found[1])
    finally:
        server.terminate()
        server.communicate()


def subject(how: str, port: int, directory: Path, pages: int) -> dict[str, Any]:
    """Run the crawl that is measured from inside (:mod:`gossamer.bench.subject`), on a processor of its own.

    Raises:
        UsageError: it failed.
    """
    command = [sys.executable, "-m", "gossamer.bench.subject", how, str(port), str(directory), str(pages)]
    with pinned(min):
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, env={**os.environ, **source()})
    if done.returncode:
        raise UsageError(f"the crawl to be measured ended with status {done.returncode}; see above")
    told: dict[str, Any] = msgspec.json.decode(done.stdout.splitlines()[-1])
    return told
