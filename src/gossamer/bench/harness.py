"""The common ground of benchmarks: crawls as commands and from inside, servers beside them, processes of their own, the kernel's
figures.

Place in the flow: each benchmark is a `run(...)` that returns a :class:`BenchReport`; click's options
stand above it, and `gossamer bench NAME` calls it. Where there are two processors, crawl and server do not share one.
"""

import importlib
import json
import os
import platform
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import IO, Any, TypeVar

import click
import msgspec

from gossamer.crawls.summary import Summary
from gossamer.engine import processes
from gossamer.values.errors import UsageError

#: Where a crawl of a simulated web begins: its largest host, which links to all others.
SEED = "http://www.amber0.sim/"

#: Settings of a web that lets a crawl go at its own pace: no rules for one crawler, no traps, and no page that answers 503 with
#: `Retry-After` at first, for which a polite crawl lets the whole host wait.
PLAIN = ("plain_robots=true", "trap_share=0", "flaky_share=0")

#: A crawl that stays in one process, also where others would join by themselves.
ALONE = ("--agents", "1")

#: A crawl that waits for no host; the servers are ours.
AT_ONCE = ("--delay", "0", "--domain-delay", "0", "--ip-delay", "0")

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def pages_option(default: int, of: str = "Use this many pages.") -> Callable[[F], F]:
    """`--pages N`."""
    return click.option("--pages", type=click.IntRange(100), default=default, show_default=True, help=of)


#: `--site DIR`, any number of times.
site_option = click.option(
    "--site",
    "sites",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Take this folder of HTML (repeatable).",
)

#: `--repeats N`.
repeats_option = click.option(
    "--repeats", type=click.IntRange(1, 20), default=3, show_default=True, help="Run each kind this many times."
)


# -- the report: tables of figures, and the machine and versions that they were measured on


def machine() -> dict[str, str]:
    """Processor, cores, memory, system, Python and the libraries that speed depends on."""
    info = {"system": platform.platform(terse=True), "python": sys.version.split()[0], "cores": str(os.cpu_count())}
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        names = [
            line.partition(":")[2].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")
        ]
        info["processor"] = names[0] if names else platform.processor()
    for name in ("pycurl", "selectolax", "ada-url", "msgspec", "isal", "uvloop", "rocksdict"):
        try:
            info[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return info


class FigureTable(msgspec.Struct):
    """Rows of figures under named columns."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = []

    def add(self, *cells: Any) -> None:
        self.rows.append(tuple(str(cell) for cell in cells))

    def text(self) -> str:
        """The table in Markdown, with columns aligned so that it also reads in a terminal."""
        widths = [max(len(row[i]) for row in (self.columns, *self.rows)) for i in range(len(self.columns))]

        def line(row: tuple[str, ...]) -> str:
            return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"

        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        return "\n".join([self.title, "", line(self.columns), rule, *map(line, self.rows)])


class BenchReport(msgspec.Struct):
    """The tables of one benchmark."""

    name: str
    tables: list[FigureTable] = []
    machine: dict[str, str] = msgspec.field(default_factory=machine)
    date: str = msgspec.field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    command: str = ""
    """As it was typed."""

    def table(self, title: str, *columns: str) -> FigureTable:
        made = FigureTable(title, columns)
        self.tables.append(made)
        return made

    def text(self) -> str:
        """Machine, versions and all tables."""
        head = ", ".join(f"{key} {value}" for key, value in self.machine.items())
        said = f"{self.date}: {self.command}" if self.command else self.date
        return "\n\n".join([f"{self.name}: {head}", said, *(table.text() for table in self.tables)])

    def json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self))


# -- processes of their own


def apart(place: str, *arguments: Any) -> Any:
    """Call `module:function` in a process of its own, and return what it returns; both sides must be sayable in JSON.

    Memory that another measurement took would count, and what another one loaded would cost nothing.

    Raises:
        UsageError: it failed.
    """
    command = processes.command("gossamer.bench.harness", place, msgspec.json.encode(arguments).decode())
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, env=processes.environment())
    if done.returncode:
        raise UsageError(f"the process that was to be measured ended with status {done.returncode}; see above")
    return msgspec.json.decode(done.stdout.splitlines()[-1])


@contextmanager
def pinned(choose: Callable[[set[int]], int]) -> Iterator[None]:
    """A process that is started inside gets one processor where there are several: crawler and server must not share one."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {choose(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_of_children() -> float:
    """Seconds of CPU of all processes that were begun here and have ended, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Spent:
    """The time that passes inside, added up: by the clock, and of processors, in this thread and in all."""

    def __init__(self) -> None:
        self.wall = self.cpu = self.thread = self.longest = 0.0
        self._began = (0.0, 0.0, 0.0)

    def __enter__(self) -> "Spent":
        self._began = time.perf_counter(), time.process_time(), time.thread_time()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._began[0]
        self.wall += wall
        self.longest = max(self.longest, wall)
        self.cpu += time.process_time() - self._began[1]
        self.thread += time.thread_time() - self._began[2]


# -- servers


@contextmanager
def serving(command: Sequence[str]) -> Iterator[tuple[str, IO[str]]]:
    """Run a server of ours on the last processor, until the end; gives its first line, and what else it says.

    Raises:
        UsageError: it did not start.
    """
    with pinned(max):
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=processes.environment())
    assert server.stdout is not None
    try:
        said = server.stdout.readline().strip()
        if not said:
            raise UsageError("a server of the benchmark did not start; see above")
        yield said, server.stdout
    finally:
        server.terminate()
        server.communicate()


@contextmanager
def served(*options: str) -> Iterator[tuple[int, IO[str]]]:
    """Run `gossamer simweb` on a free loopback port; gives the port, and what else it says."""
    with serving(processes.command("gossamer", "simweb", "--port", "0", *options)) as (said, more):
        found = re.search(r"http://[^/]+:(\d+)/", said)
        if found is None:
            raise UsageError(f"the simulated web did not start: {said}")
        yield int(found[1]), more


@contextmanager
def simulated(pages: int, hosts: int, *settings: str, log: Path | None = None) -> Iterator[int]:
    """Serve a simulated web; gives its port. Raises UsageError if it did not start."""
    options = ["--pages", str(pages), "--hosts", str(hosts)]
    options += [word for setting in settings for word in ("--set", setting)]
    options += ["--log", str(log)] if log is not None else []
    with served(*options) as (port, _):
        yield port


def at(port: int) -> tuple[str, ...]:
    """The option `resolve` of a crawl of a simulated web."""
    return (f"*.sim=127.0.0.1:{port}",)


@contextmanager
def nginx(root: Path) -> Iterator[int]:
    """Serve a folder on a free loopback port. Raises UsageError: nginx is not installed."""
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if binary is None:
        raise UsageError("nginx is not on this machine; install it (package nginx-light) to measure beside the peers")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        file = Path(folder) / "nginx.conf"
        file.write_text(_NGINX.format(folder=folder, root=root, port=port))
        with pinned(max):
            process = subprocess.Popen(
                [binary, "-c", str(file), "-p", folder, "-g", "daemon off;"], stderr=subprocess.DEVNULL
            )
        try:
            deadline = time.monotonic() + 10
            while True:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                if time.monotonic() > deadline:
                    raise UsageError("nginx did not start within 10 s")
                time.sleep(0.02)
            yield port
        finally:
            process.terminate()
            process.wait()


_NGINX = """
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 512; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000; gzip off; default_type application/octet-stream;
  types {{ text/html html htm; text/css css; application/javascript js; image/png png; image/svg+xml svg; text/plain txt; }}
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen 127.0.0.1:{port}; root {root}; index index.html; }}
}}
"""


def free_port() -> int:
    """A port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# -- crawls as people run them


class BenchedCrawl(msgspec.Struct, frozen=True):
    """One crawler's run, or of several at once; by the kernel's account of all its processes."""

    pages: int
    seconds: float
    """From the first process' start to the last one's end."""
    cpu: float
    bytes: int = 0
    """Of the bodies."""
    peak: int = 0
    """Bytes of the largest process."""

    @property
    def pace(self) -> float:
        return self.pages / self.seconds

    @property
    def cpu_each(self) -> float:
        """Milliseconds of CPU a page."""
        return 1e3 * self.cpu / max(self.pages, 1)


def crawled(pages: int, hosts: int, crawls: Sequence[Sequence[str]], *, web: int | None = None) -> BenchedCrawl:
    """Crawl a simulated web on all processors, by several commands at once.

    Args:
        pages: that each command fetches.
        hosts: of the web.
        crawls: the options of each command, beside those that make it quick; without any it has one agent.
        web: pages of the web, where there are more; else each command crawls it whole.

    Raises:
        UsageError: one of them failed.
    """
    part = ["--max-pages", str(pages)] if web else []
    with (
        tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder,
        simulated(web or pages, hosts, *PLAIN) as port,
    ):
        begin = (
            begun(Path(folder, str(number)), port, [*(more or ALONE), *part]) for number, more in enumerate(crawls)
        )
        return accounted(begin)[0]


def accounted(begin: Iterable["subprocess.Popen[bytes]"]) -> tuple[BenchedCrawl, list[Summary]]:
    """Begin crawls, wait for their ends, and account for them together; and what each said.

    Raises:
        UsageError: one of them failed.
    """
    began, before = time.monotonic(), cpu_of_children()
    ended = [(process.communicate()[0], process.returncode) for process in list(begin)]
    seconds, cpu = time.monotonic() - began, cpu_of_children() - before
    for _, code in ended:
        if code not in (0, 4):
            raise UsageError(f"a crawl ended with status {code}")
    told = [msgspec.json.decode(out, type=Summary) for out, _ in ended]
    return BenchedCrawl(sum(one.pages for one in told), seconds, cpu, sum(one.bytes for one in told)), told


def by_turns(kinds: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, list[T]]:
    """Run every kind in turn, so many times: what a machine's hour does to one, it does to all."""
    runs: dict[str, list[T]] = {name: [] for name in kinds}
    for _ in range(repeats):
        for name, run in kinds.items():
            runs[name].append(run())
    return runs


def middle(runs: Iterable[Any], what: str) -> float:
    """The median of a figure of runs."""
    return float(statistics.median(getattr(one, what) for one in runs))


def begun(directory: Path, port: int, more: Sequence[str], seeds: Sequence[str] = (SEED,)) -> "subprocess.Popen[bytes]":
    """Begin a crawl that waits for no host, and writes its summary as JSON."""
    quick = ["--scope", "any", *AT_ONCE, "--allow-network", "127.0.0.0/8"]
    command = ["crawl", *seeds, *quick, "--resolve", *at(port), "--json", "-o", str(directory), *more]
    return subprocess.Popen(
        processes.command("gossamer", *command), env=processes.environment(), stdout=subprocess.PIPE
    )


def measured(command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None) -> BenchedCrawl:
    """Run a crawler on the first processor, and account for it; its last line is JSON with `pages` and `bytes`.

    Raises:
        UsageError: it did not end as a crawler that has crawled.
    """
    began = time.monotonic()
    with pinned(min):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=cwd, env={**os.environ, **(environment or {})})
    assert child.stdout is not None
    try:
        with child.stdout as said:
            output = said.read()
    except BaseException:
        child.kill()
        raise
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 4, 8):
        raise UsageError(f"{command[0]} ended with status {child.returncode}")
    told = json.loads(output.splitlines()[-1]) if output.strip() else {}
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = usage.ru_utime + usage.ru_stime
    return BenchedCrawl(told.get("pages", 0), time.monotonic() - began, cpu, told.get("bytes", 0), peak)


if __name__ == "__main__":
    module, _, function = sys.argv[1].partition(":")
    answer = getattr(importlib.import_module(module), function)(*msgspec.json.decode(sys.argv[2]))
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
