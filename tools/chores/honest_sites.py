"""Crawl folders of HTML as sites, at several depths, and prove that no page is lost to a guess: `honest-sites FOLDER...`.

Each folder (an unpacked documentation package, say) is served on loopback by a process of its own, at the root and below 3 and 7
more directories. It is crawled once with `--traps report`, which follows everything, and then at each depth as by default. What the
first crawl fetched and another did not is lost, whether it was set aside or not. Exit status 1 where anything is.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.checkout import ROOT

#: Directories below which a folder is mounted.
MOUNTS = ("", "/srv/pub/docs", "/srv/pub/docs/mirror/by/name/all")

#: Pages that are fetched at once: one host, which is ours.
AT_ONCE = "8"

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


def main(arguments: list[str]) -> int:
    """Crawl each folder, written `FOLDER` or `FOLDER:START` with the path of a start page."""
    if not arguments or arguments[0].startswith("-"):
        print("usage: ./gossamer dev honest-sites FOLDER[:START]...", file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    total = lost = 0
    for argument in arguments:
        name, _, start = argument.partition(":")
        folder = Path(name)
        everything, _, _ = crawled(folder, "", start, "--traps", "report")
        pages = sum(bool(re.search(r"\.x?html?$|/$|^$", path)) for path in everything)
        told = []
        for mount in MOUNTS:
            found, summary, seconds = crawled(folder, mount, start)
            missing = sorted(everything - found)
            lost += len(missing)
            told.append(f"{len(missing)} lost, {summary['set_aside']} set aside, {seconds:.0f} s")
            for path in missing[:3]:
                print(f"{folder.name}: below {mount or '/'} lost {path}")
        total += pages
        print(f"{argument}: {len(everything)} documents, {pages} pages; {'; '.join(told)}", flush=True)
    print(f"{len(arguments)} folders, {total} pages, {len(MOUNTS)} mounts: {lost} lost")
    return 1 if lost else 0
