"""A crawl that sends crawlers, and the runtime that runs them, killed again and again: results are those of a clean run.

A runtime serves a folder of made pages on loopback, some of them relevant. Now the crawl is killed, now the runtime, now the line
between them breaks off, at any moment of a journey. Archive and tables of each crawl that comes to its end are compared with the
folder; then another one begins.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

from gossamer.query.archive import ArchiveReader
from gossamer.query.database import Database
from gossamer.values.body import pieces
from tools.bench.mobile import made_pages
from tools.bench.traffic import SHARES, RuntimeProcess, SlowLine, write_site
from tools.killing.campaigns import Say, Told
from tools.killing.site import begun, judge_last

#: Pages of the site: several batches of 8 MB.
PAGES = 700

#: Which of them are relevant, in per cent.
SHARE = 50

#: Seconds after the begin of a life within which something is killed.
LONGEST = 6.0

_HOST = "www.kills.example"


def run(folder: Path, say: Say, *, kills: int = 30, seed: int = 1) -> Told:
    """Crawl the site, killing crawl, runtime or line so often, and compare what it has with the folder, which is empty at first."""
    chance, told, root = random.Random(seed), Told(), folder / "site"
    folder.chmod(0o755)
    root.mkdir()
    write_site(made_pages(PAGES), root)
    runtime = RuntimeProcess(_HOST, root, folder / "runtime", "--weak-isolation")
    runtime.begin()
    try:
        with SlowLine(runtime.port, 0.02, 3e6) as line:

            def started(number: int) -> subprocess.Popen[bytes]:
                given = ["--mobile", "--runtime", f"{_HOST}=http://127.0.0.1:{line.port}"]
                given += ["--filter", f"store: text({SHARES[SHARE]})", "--traps", "report"]
                first = ["crawl", f"http://{_HOST}/all.html", *given, "--contact", "kills@example.org"]
                return begun(folder / f"crawl-{number}", first, environment={"GOSSAMER_RUNTIME_KEY": runtime.key})

            number = 0
            crawl = started(number)
            while told.figures["kills"] < kills:
                time.sleep(chance.uniform(0.2, LONGEST))
                if crawl.poll() is not None:
                    # It came to its end alive: another one begins.
                    _judge(told, crawl, folder / f"crawl-{number}", root)
                    number += 1
                    crawl = started(number)
                    continue
                victim = chance.choice(("crawl", "crawl", "runtime", "line"))
                if victim == "runtime":
                    runtime.end(signal.SIGKILL)
                    runtime.begin()
                elif victim == "line":
                    line.cut()
                else:
                    crawl.kill()
                    crawl.communicate()
                    crawl = started(number)
                told.figures["kills"] += 1
                told.figures[f"of_{victim}"] += 1
            _judge(told, crawl, folder / f"crawl-{number}", root)
    finally:
        runtime.end(signal.SIGKILL)
    return told


def _judge(told: Told, crawl: subprocess.Popen[bytes], directory: Path, root: Path) -> None:
    """What a crawl has at its end is what lies in the folder and is relevant, each once."""
    judge_last(told, crawl)
    pages = {f"http://{_HOST}/{file.relative_to(root).as_posix()}": file.read_bytes() for file in root.rglob("*.html")}
    wanted = {url: page for url, page in pages.items() if SHARES[SHARE].encode() in page}
    reader = ArchiveReader(directory)
    with Database(directory) as database:
        rows = list(database.ask("SELECT url, count(*) FROM pages_all WHERE outcome = 'ok' GROUP BY url"))
    found = {url for url, _ in rows}
    told.figures["crawls"] += 1
    told.figures["documents"] += len(rows)
    told.wrong += [f"{url} is there {count} times" for url, count in rows if count > 1]
    told.wrong += [f"{url} is missing" for url in sorted(wanted.keys() - found)]
    told.wrong += [f"{url} is not relevant" for url in sorted(found - wanted.keys())]
    for url in sorted(found & wanted.keys()):
        if b"".join(pieces(reader.document(url).source.body)) != wanted[url]:
            told.wrong.append(f"{url} has other bytes")
