"""Gossamer beside its peers: the same site, the same links followed, one run; CPU of the crawler alone.

The site is served by nginx (on its own processor where there are two), because a server of ours would share the crawler's
habits. Peers of Python live in environments of their own, made by pip on the first run; wget is measured where it is
installed. What is compared is CPU a page: wall time on a shared machine says more about the neighbours.
"""

import compileall
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from gossamer.bench.report import BenchReport
from gossamer.engine import processes
from gossamer.values.errors import UsageError

#: Where peers' environments are kept between runs.
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gossamer" / "peers"

#: Live requests to the one host, for every crawler.
PER_HOST = 16


#: What our crawl does for a page -> its options. All obey no delay: the server is ours.
PROFILES = {
    "plain": ("--no-warc", "--robots", "ignore"),
    "archive": (),
    "everything": ("--analysis", "full"),
}

#: Tags whose links are followed, by every crawler.
TAGS = "a,area,iframe,frame"


class PeerRun(msgspec.Struct, frozen=True):
    """One crawler's run over the site."""

    pages: int
    bytes: int
    """Of the bodies."""
    cpu: float
    """Seconds, user and system, of the crawler and its children."""
    wall: float
    peak: int
    """Bytes of the largest process."""


#: From a seed and a folder that is the run's own to the run.
Crawler = Callable[[str, Path], PeerRun]


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
        with pinned(max):
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
def pinned(choose: Callable[[set[int]], int]) -> Iterator[None]:
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


def measured(command: list[str], cwd: Path, **environment: str) -> PeerRun:
    """Run a crawler, and account for it by the kernel's own figures; its last line is JSON with `pages` and `bytes`.

    Raises:
        UsageError: it did not end as a crawler that has crawled.
    """
    began = time.monotonic()
    with pinned(min):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=cwd, env={**os.environ, **environment})
    assert child.stdout is not None
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 4, 8):
        raise UsageError(f"{command[0]} ended with status {child.returncode}")
    told = json.loads(output.splitlines()[-1]) if output.strip() else {}
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = usage.ru_utime + usage.ru_stime
    return PeerRun(told.get("pages", 0), told.get("bytes", 0), cpu, time.monotonic() - began, peak)


def gossamer(seed: str, folder: Path, profile: str) -> PeerRun:
    """Our crawl, doing for each page what the profile says."""
    command = processes.command("gossamer", "crawl", seed, "--per-host", str(PER_HOST), "--json", "--quiet")
    command += ["--delay", "0", "--domain-delay", "0", "--ip-delay", "0", *PROFILES[profile]]
    return measured([*command, "-o", str(folder / "crawl")], folder, **processes.environment())


def scrapy(seed: str, folder: Path) -> PeerRun:
    """Scrapy, following the same links; it archives nothing."""
    return _spider("scrapy", "scrapy", seed, folder)


def crawlee(seed: str, folder: Path) -> PeerRun:
    """Crawlee's crawler for HTTP with parsel, following the same links; it archives nothing."""
    return _spider("crawlee", "crawlee[parsel]", seed, folder)


def _spider(name: str, package: str, seed: str, folder: Path) -> PeerRun:
    script = Path(__file__).with_name(f"{name}_spider.py")
    return measured([str(environment(name, package)), str(script), seed, str(PER_HOST)], folder)


def wget(seed: str, folder: Path) -> PeerRun:
    """wget, following the same links one after the other, and keeping the pages as files."""
    command = ["wget", "-q", "-r", "-l", "inf", "-e", "robots=off", f"--follow-tags={TAGS}", "--no-parent", seed]
    run = measured(command, folder)
    kept = [path for path in folder.rglob("*") if path.is_file()]
    pages = sum(path.suffix in (".html", ".htm") for path in kept)
    return msgspec.structs.replace(run, pages=pages, bytes=sum(path.stat().st_size for path in kept))


def environment(name: str, *packages: str) -> Path:
    """The Python of a peer's own environment, made on the first call."""
    own = CACHE / name / "bin" / "python"
    stamp = CACHE / name / "ready"
    if not stamp.exists():
        print(f"setting up {name} in an environment of its own (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-I", "-m", "venv", "--clear", str(CACHE / name)], check=True)
        command = [str(own), "-I", "-m", "pip", "install", "-q", *packages]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise UsageError(f"pip could not install {' '.join(packages)}: {done.stderr.strip().splitlines()[-1]}")
        stamp.touch()
    return own


def crawlers(profiles: Sequence[str]) -> dict[str, Crawler]:
    """The crawlers to run, by the name in the table: ours in each profile, then the peers."""
    found: dict[str, Crawler] = {f"gossamer {name}": partial(gossamer, profile=name) for name in profiles}
    found |= {"scrapy": scrapy, "crawlee": crawlee}
    if shutil.which("wget"):
        found["wget"] = wget
    return found


def _versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of the peers, for the record."""
    found = {}
    for name in {"scrapy", "crawlee"} & set(names):
        asked = f"from importlib.metadata import version; print(version({name!r}))"
        done = subprocess.run(
            [str(CACHE / name / "bin" / "python"), "-I", "-c", asked], check=False, capture_output=True, text=True
        )
        found[name] = done.stdout.strip()
    if "wget" in names:
        done = subprocess.run(["wget", "--version"], check=False, capture_output=True, text=True)
        found["wget"] = done.stdout.partition(" built")[0].rpartition(" ")[2]
    return found


def run(roots: list[Path], repeats: int = 3, profiles: Sequence[str] = tuple(PROFILES)) -> BenchReport:
    """Crawl each folder with every crawler in turn, several times, and compare.

    Raises:
        UsageError: nginx is not here, a peer cannot be set up, or a crawler failed.
    """
    report = BenchReport("peers")
    # An installed package has its bytecode; a checkout whose files have just changed would pay for it in every run.
    compileall.compile_dir(str(Path(__file__).parents[1]), quiet=1)
    chosen = crawlers(profiles)
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name:
        for root in roots:
            with nginx(root) as port:
                _compare(report, root, f"http://127.0.0.1:{port}/", chosen, Path(name), repeats)
    report.machine |= _versions(chosen)
    return report


def _compare(
    report: BenchReport, root: Path, seed: str, chosen: dict[str, Crawler], folder: Path, repeats: int
) -> None:
    runs: dict[str, list[PeerRun]] = {name: [] for name in chosen}
    for number in range(repeats):
        for name, crawler in chosen.items():
            own = folder / f"{root.name}-{number}-{name.replace(' ', '-')}"
            own.mkdir()
            runs[name].append(crawler(seed, own))
            if not runs[name][-1].pages:
                raise UsageError(f"{name} found no page at {seed}; nothing can be compared")
            shutil.rmtree(own)
    table = report.table(
        f"{root.name}, {PER_HOST} live requests (wget: one), medians of {repeats}",
        *("crawler", "pages", "MB", "ms CPU a page", "pages a CPU second", "pages/s", "peak MB", "times scrapy"),
    )
    for name, done in runs.items():
        cost = _median([one.cpu / max(one.pages, 1) * 1000 for one in done])
        ratio = _median([_cost(other) / _cost(one) for one, other in zip(done, runs["scrapy"], strict=True)])
        speed = _median([one.pages / one.wall for one in done])
        peak = max(one.peak for one in done) / 1e6
        size = f"{done[0].bytes / 1e6:.1f}"
        table.add(
            name,
            done[0].pages,
            size,
            f"{cost:.2f}",
            f"{1000 / cost:.0f}",
            f"{speed:.0f}",
            f"{peak:.0f}",
            f"{ratio:.1f}",
        )


def _cost(run: PeerRun) -> float:
    return run.cpu / max(run.pages, 1)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
