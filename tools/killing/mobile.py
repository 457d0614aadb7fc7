"""A crawl that sends crawlers, and the runtime that runs them, killed again and again: results are those of a clean run.

A runtime serves a folder of made pages on loopback, some of them relevant. Now the crawl is killed, now the runtime, now the line
between them breaks off, at any moment of a journey. Archive and tables of each crawl that comes to its end are compared with the
folder; then another one begins.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

import msgspec

from gossamer.engine import processes
from gossamer.query.archive import ArchiveReader
from gossamer.query.database import Database
from gossamer.values.body import pieces
from tools.bench.mobile import made_pages
from tools.bench.traffic import SHARES, SlowLine, write_site

#: Pages of the site: several batches of 8 MB.
PAGES = 700

#: Which of them are relevant, in per cent.
SHARE = 50

#: Seconds after the begin of a life within which something is killed.
LONGEST = 6.0

#: Seconds for one life, on a machine that has much else to do.
_PATIENCE = 600

_HOST = "www.kills.example"


class MobileKills(msgspec.Struct):
    """How it went."""

    kills: int = 0
    of_runtime: int = 0
    of_line: int = 0
    crawls: int = 0
    """That came to their end: each is compared, and then another one begins."""
    documents: int = 0
    wrong: list[str] = []

    @property
    def holds(self) -> bool:
        """Nothing was lost, and nothing is there twice."""
        return not self.wrong


def run(kills: int, folder: Path, seed: int = 1) -> MobileKills:
    """Crawl the site, killing crawl, runtime or line `kills` times, and compare what it has with the folder.

    Args:
        kills: how often.
        folder: an empty folder.
        seed: of the moments.
    """
    chance, told, directory, root = random.Random(seed), MobileKills(), folder / "crawl", folder / "site"
    folder.chmod(0o755)
    root.mkdir()
    write_site(made_pages(PAGES), root)
    state, port = folder / "runtime", _free_port()
    admit = processes.command("gossamer", "runtime", "admit", "home", "--state", str(state))
    key = subprocess.run(admit, env=processes.environment(), capture_output=True, check=True).stdout.decode().split()[0]
    runtime = _served(root, state, port)
    line = SlowLine(port, 0.02, 3e6)
    line.__enter__()
    try:
        crawl = _begun(directory, line.port, key)
        while told.kills < kills:
            time.sleep(chance.uniform(0.2, LONGEST))
            if crawl.poll() is not None:
                # It came to its end alive: another one begins.
                _judge(told, crawl, directory, root)
                directory = folder / f"crawl-{told.crawls}"
                crawl = _begun(directory, line.port, key)
                continue
            victim = chance.choice(("crawl", "crawl", "runtime", "line"))
            if victim == "runtime":
                _kill(runtime)
                runtime = _served(root, state, port)
                told.of_runtime += 1
            elif victim == "line":
                line.cut()
                told.of_line += 1
            else:
                crawl.kill()
                crawl.communicate()
                crawl = _begun(directory, line.port, key)
            told.kills += 1
        _judge(told, crawl, directory, root)
    finally:
        _kill(runtime)
        line.__exit__(None, None, None)
    return told


def _judge(told: MobileKills, crawl: subprocess.Popen[bytes], directory: Path, root: Path) -> None:
    """Wait for the end of a crawl's last life, and compare."""
    output, _ = crawl.communicate(timeout=_PATIENCE)
    told.crawls += 1
    if crawl.returncode or not output.strip() or json.loads(output)["state"] != "finished":
        told.wrong.append(f"the last life ended with {crawl.returncode}: {output.decode(errors='replace')[:500]}")
    _compare(told, directory, root)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _served(root: Path, state: Path, port: int) -> subprocess.Popen[bytes]:
    command = processes.command(
        *("gossamer", "runtime", "--serve", f"{_HOST}={root}", "--listen", f"127.0.0.1:{port}"),
        *("--weak-isolation", "--state", str(state)),
    )
    return subprocess.Popen(command, env=processes.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def _begun(directory: Path, port: int, key: str) -> subprocess.Popen[bytes]:
    """The crawl, begun or resumed."""
    is_begun = (directory / "crawl.toml").exists()
    given = ["resume", str(directory)] if is_begun else ["crawl", f"http://{_HOST}/all.html", "-o", str(directory)]
    if not is_begun:
        given += ["--mobile", "--runtime", f"{_HOST}=http://127.0.0.1:{port}", "--contact", "kills@example.org"]
        given += ["--filter", f"store: text({SHARES[SHARE]})", "--traps", "report"]
    environment = {**processes.environment(), "GOSSAMER_RUNTIME_KEY": key}
    command = processes.command("gossamer", *given, "--json", "--quiet")
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _compare(told: MobileKills, directory: Path, root: Path) -> None:
    """What the crawl has is what lies in the folder and is relevant, each once."""
    wanted = {}
    for file in root.rglob("*.html"):
        page = file.read_bytes()
        if SHARES[SHARE].encode() in page:
            wanted[f"http://{_HOST}/{file.relative_to(root).as_posix()}"] = page
    reader = ArchiveReader(directory)
    with Database(directory) as database:
        rows = list(database.ask("SELECT url, count(*) FROM pages_all WHERE outcome = 'ok' GROUP BY url"))
    told.documents += len(rows)
    told.wrong += [f"{url} is there {count} times" for url, count in rows if count > 1]
    found = {url for url, _ in rows}
    told.wrong += [f"{url} is missing" for url in sorted(wanted.keys() - found)]
    told.wrong += [f"{url} is not relevant" for url in sorted(found - wanted.keys())]
    for url in sorted(found & wanted.keys()):
        if b"".join(pieces(reader.document(url).source.body)) != wanted[url]:
            told.wrong.append(f"{url} has other bytes")
