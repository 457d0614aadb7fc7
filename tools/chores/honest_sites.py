"""Crawl sites whose truth is known, and prove that no page is lost to a guess: `honest-sites FOLDER... --simulated PAGES[:SEEDS]`.

Each folder (an unpacked documentation package, say) is served on loopback by a process of its own, at the root and below 3 and 7
more directories. It is crawled once with `--traps report`, which follows everything, and then at each depth as by default. What the
first crawl fetched and another did not is lost, whether it was set aside or not.

Simulated webs are crawled in memory (:mod:`tools.simulated`): of so many pages, as many of them as there are seeds. A page of their
hosts that is set aside at the end is lost; requests inside their traps are counted. Exit status 1 where anything is lost.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gossamer.simweb import SimWeb, WebSpec
from tools.checkout import ROOT
from tools.simulated import crawl

#: Directories below which a folder is mounted.
MOUNTS = ("", "/srv/pub/docs", "/srv/pub/docs/mirror/by/name/all")

#: Pages that are fetched at once: one host, which is ours.
AT_ONCE = "8"

#: Pages of a host of a simulated web, on average, and the share of its hosts that have a trap.
HOST_SIZE, TRAPPED = 100, 0.05

#: Serves a folder below a beginning of paths, and lists directories that have no index.
SERVER = """
import functools, http.server, sys
folder, mount = sys.argv[1:]
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *arguments): pass
    def translate_path(self, path):
        return super().translate_path(path[len(mount):] if path.startswith(mount + "/") else "/no such file")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def served(folder: Path, mount: str) -> Iterator[str]:
    """The URL of a folder that is served."""
    command = [sys.executable, "-P", "-c", SERVER, str(folder), mount]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}{mount}/"
        finally:
            process.kill()


def crawled(folder: Path, mount: str, start: str, *options: str) -> tuple[set[str], dict[str, object], float]:
    """Paths below the mount that were fetched, the line that the crawl ended with, and the seconds that it took."""
    with served(folder, mount) as url, tempfile.TemporaryDirectory(prefix="honest-") as place:
        directory = Path(place, "c")
        command = [str(ROOT / "gossamer"), "crawl", url + start, "-o", str(directory), "--delay", "0"]
        command += ["--per-host", AT_ONCE, "--no-warc", "--quiet", "--json", *options]
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 4):
            raise SystemExit(f"{folder.name}: {done.stderr.strip() or done.returncode}")
        log = (directory / "logs" / "crawl.jsonl").read_bytes()
        rows = map(json.loads, log.splitlines())
        found = {row["url"].removeprefix(url) for row in rows if row["event"] == "page" and row["outcome"] == "ok"}
        return found, json.loads(done.stdout), time.monotonic() - began


def honest(argument: str) -> tuple[int, int]:
    """Crawl a folder, written `FOLDER` or `FOLDER:START` with the path of a start page; gives its pages, and the lost ones."""
    name, _, start = argument.partition(":")
    folder = Path(name)
    everything, _, _ = crawled(folder, "", start, "--traps", "report")
    pages = sum(bool(re.search(r"\.x?html?$|/$|^$", path)) for path in everything)
    lost, told = 0, []
    for mount in MOUNTS:
        found, summary, seconds = crawled(folder, mount, start)
        missing = sorted(everything - found)
        lost += len(missing)
        told.append(f"{len(missing)} lost, {summary['set_aside']} set aside, {seconds:.0f} s")
        for path in missing[:3]:
            print(f"{folder.name}: below {mount or '/'} lost {path}")
    print(f"{argument}: {len(everything)} documents, {pages} pages; {'; '.join(told)}", flush=True)
    return pages, lost


def simulated(pages: int, seed: int) -> tuple[int, int]:
    """Crawl a simulated web with traps; gives the pages that came, and those that are lost."""
    spec = WebSpec(pages=pages, hosts=max(1, pages // HOST_SIZE), seed=seed, plain_robots=True, trap_share=TRAPPED)
    spent, _ = crawl(SimWeb(spec), most=pages * 4)
    lost, trapped, probed = spent.lost.total(), spent.trapped.total(), spent.probed.total()
    told = f"{len(spent.pages)} pages; {lost} lost, {spent.aside.total()} set aside"
    print(
        f"simulated {pages}, seed {seed}: {told}; {trapped} requests in traps and {probed} probes of them", flush=True
    )
    return len(spent.pages), lost


def main(arguments: list[str]) -> int:
    """Crawl each folder, and each simulated web."""
    reader = argparse.ArgumentParser(prog="./gossamer dev honest-sites", description=__doc__.partition("\n")[0])
    reader.add_argument(
        "folders", nargs="*", metavar="FOLDER[:START]", help="a folder of HTML, and the path of its start page"
    )
    reader.add_argument(
        "--simulated", action="append", default=[], metavar="PAGES[:SEEDS]", help="simulated webs of so many pages"
    )
    given = reader.parse_args(arguments)
    counts = [honest(folder) for folder in given.folders]
    for web in given.simulated:
        pages, _, seeds = web.partition(":")
        counts += [simulated(int(pages), seed) for seed in range(1, int(seeds or 1) + 1)]
    if not counts:
        reader.error("name a folder, or --simulated PAGES")
    lost = sum(one for _, one in counts)
    print(f"{len(counts)} sites and webs, {sum(pages for pages, _ in counts)} pages: {lost} lost")
    return 1 if lost else 0
