"""Gossamer beside its peers: the same site, the same links followed, one run; CPU of the crawler alone.

The site is served by nginx (on its own processor where there are two), because a server of ours would share the crawler's
habits. Peers live in environments of their own, made by pip on the first run. What is compared is pages per CPU second:
wall time on a shared machine says more about the neighbours.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gossamer.bench.report import Report
from gossamer.model.errors import UsageError

#: Where peers' environments are kept between runs.
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gossamer" / "peers"

#: Live requests to the one host, for every crawler.
PER_HOST = 16


class Run(msgspec.Struct, frozen=True):
    """One crawler's run over the site."""

    pages: int
    cpu: float
    """Seconds, user and system, of the crawler and its children."""
    wall: float
    peak: int
    """Bytes of the largest process."""


@contextmanager
def nginx(root: Path) -> Iterator[int]:
    """Serve a folder on a free loopback port, on the last processor where there are several.

    Raises:
        UsageError: nginx is not installed.
    """
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if binary is None:
        raise UsageError("nginx is not on this machine; install it (package nginx-light) to measure beside the peers")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        config = Path(folder) / "nginx.conf"
        config.write_text(_NGINX.format(folder=folder, root=root, port=port))
        command = [binary, "-c", str(config), "-p", folder, "-g", "daemon off;"]
        with _pinned(max):
            server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield port
        finally:
            server.terminate()
            server.wait()


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


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise UsageError("nginx did not start within 10 s")


@contextmanager
def _pinned(choose: Callable[[set[int]], int]) -> Iterator[None]:
    """What is started inside gets one processor where there are several: crawler and server must not share one."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {choose(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measured(command: list[str], **environment: str) -> tuple[dict[str, Any], Run]:
    """Run a crawler that prints one line of JSON with `pages`, and account for it by the kernel's own figures."""
    began = time.monotonic()
    with _pinned(min):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **environment})
    assert child.stdout is not None
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 4, 8):
        raise UsageError(f"{command[0]} ended with status {child.returncode}")
    told = json.loads(output.splitlines()[-1]) if output.strip() else {}
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return told, Run(told.get("pages", 0), usage.ru_utime + usage.ru_stime, time.monotonic() - began, peak)


def gossamer(seed: str, folder: Path, number: int) -> Run:
    """Our crawl, archive on."""
    command = [
        sys.executable,
        "-m",
        "gossamer",
        "crawl",
        seed,
        "--per-host",
        str(PER_HOST),
        "--delay",
        "0",
        "--json",
        "--quiet",
    ]
    return measured([*command, "-o", str(folder / f"gossamer-{number}")], PYTHONPATH=_source())[1]


def scrapy(seed: str, folder: Path, number: int) -> Run:
    """Scrapy, following the same links; it archives nothing."""
    script = Path(__file__).with_name("scrapy_spider.py")
    return measured([str(environment("scrapy", "scrapy")), str(script), seed, str(PER_HOST)])[1]


def _source() -> str:
    return os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]))


def environment(name: str, *packages: str) -> Path:
    """The Python of a peer's own environment, made on the first call."""
    python = CACHE / name / "bin" / "python"
    stamp = CACHE / name / "ready"
    if not stamp.exists():
        print(f"setting up {name} in an environment of its own (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(CACHE / name)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
        stamp.touch()
    return python


CRAWLERS = {"gossamer": gossamer, "scrapy": scrapy}


def run(roots: list[Path], repeats: int = 3) -> Report:
    """Crawl each folder with every crawler in turn, several times, and compare."""
    if not roots:
        raise UsageError("name a folder of HTML with --site DIR; installed documentation does well")
    report = Report("peers")
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name:
        folder = Path(name)
        for root in roots:
            with nginx(root) as port:
                _compare(report, root, f"http://127.0.0.1:{port}/", folder, repeats)
    return report


def _compare(report: Report, root: Path, seed: str, folder: Path, repeats: int) -> None:
    runs: dict[str, list[Run]] = {name: [] for name in CRAWLERS}
    for number in range(repeats):
        for name, crawler in CRAWLERS.items():
            runs[name].append(crawler(seed, folder, len(report.tables) * repeats + number))
    table = report.table(
        f"{root.name}, {PER_HOST} live requests",
        "crawler",
        "pages",
        "ms CPU a page",
        "pages/s",
        "peak MB",
        "times scrapy",
    )
    for name, done in runs.items():
        cost = _median([one.cpu / max(one.pages, 1) * 1000 for one in done])
        ratio = _median([other.cpu / one.cpu for one, other in zip(done, runs["scrapy"], strict=True)])
        speed = _median([one.pages / one.wall for one in done])
        peak = max(one.peak for one in done) / 1e6
        table.add(name, done[0].pages, f"{cost:.2f}", f"{speed:.0f}", f"{peak:.0f}", f"{ratio:.1f}")


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
