"""Crawl sites whose truth is known, and prove that no page is lost to a guess: `honest-sites FOLDER... --simulated PAGES[:SEEDS]`.

Each folder (an unpacked documentation package, say) is served on loopback by a process of its own, at the root and below 3 and 7
more directories. It is crawled once with `--traps report`, which follows everything, and then at each depth as by default. What the
first crawl fetched and another did not is lost, whether it was set aside or not.

Simulated webs are crawled in memory (:func:`crawl`, which the tests of trap detection call too): of so many pages, as many of
them as there are seeds. Pages are made, read and judged by the code that a crawl uses; only fetching, the queues and the ledger
are left out, so 20,000 pages take some eight seconds. A page of their hosts that is set aside at the end is lost; requests inside
their traps are counted. Exit status 1 where anything is lost.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from pathlib import Path
from typing import NamedTuple

import msgspec

from gossamer.bench.harness import serving
from gossamer.documents.document import Document
from gossamer.expressions.contract import TaskGate
from gossamer.frontier.termination import LAST, LAST_NEWEST, SHARE
from gossamer.frontier.traps.likeness import LearntTemplates
from gossamer.frontier.traps.watch import LearntTraps, TrapSheet
from gossamer.parsing.html import HtmlLinks
from gossamer.parsing.links import JoinCache, resolve_links
from gossamer.simweb import SimWeb, WebSpec, render
from gossamer.simweb.site import Conditions, Role
from gossamer.values.body import sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.task import Family, Task
from gossamer.values.url import host_of, path_of
from gossamer.values.visit import Found, Response, Visit
from tools import ROOT

_HTML = HtmlLinks()


class Spent(NamedTuple):
    """The requests that a crawl has spent: inside traps by host, before and after probes began, and all."""

    trapped: Counter[str]
    probed: Counter[str]
    pages: set[str]
    fetched: int
    aside: Counter[tuple[str, str]]
    """URLs that are set aside at the end, by owner and part."""
    lost: Counter[tuple[str, str]]
    """Those of them that are pages of a host and no trap."""


class Shelves:
    """Tasks that are set aside, by family, as the ledger and the frontier have them."""

    def __init__(self, learnt: LearntTraps) -> None:
        self.learnt = learnt
        self.tasks: dict[Family, list[Task]] = {}
        self.sent: Counter[Family] = Counter()
        self.last: Counter[Family] = Counter()
        self.probes: set[str] = set()

    def takes(self, gate: TaskGate, task: Task) -> bool:
        family = self.learnt.place(gate, [task])[0]
        if family is None or task.url in self.probes:
            return False
        self.tasks.setdefault(msgspec.structs.replace(family, why=""), []).append(task)
        return True

    def freed(self) -> list[Task]:
        """Tasks that are set aside no more."""
        families = [msgspec.structs.replace(one, why="") for one in self.learnt.returning()]
        return [task for family in families for task in self.tasks.pop(family, ())]

    def probe(self, *, last: bool) -> list[Task]:
        """A probe of the family whose turn it is, or, at the end, one of each."""
        found = []
        for family, tasks in list(self.tasks.items()):
            if tasks and (not last or self.last[family] < LAST_NEWEST or self.sent[family] < LAST):
                self.sent[family] += 1
                self.last[family] += last
                found.append(tasks.pop())
                self.tasks[family] = self.tasks.pop(family)  # the others come first now
                if not last:
                    break
        self.probes.update(task.url for task in found)
        return found


def crawl(web: SimWeb, *, cut: bool = True, most: int = 20_000, start: str = "") -> tuple[Spent, LearntTraps]:
    """Fetch breadth first, hosts taking turns, as the default crawl does."""
    learnt = LearntTraps(TrapSheet(cut=cut))
    learnt.template = LearntTemplates()
    shelves, cache = Shelves(learnt), JoinCache()
    first = start or f"http://{web.hosts.name(0)}/"
    seen, digests = {first}, dict[str, str]()
    todo: dict[str, deque[Task]] = {host_of(first): deque([Task(first, host_of(first))])}
    trapped, probed, pages = Counter[str](), Counter[str](), set[str]()
    fetched = 0

    def queue(tasks: list[Task]) -> None:
        for task in tasks:
            todo.setdefault(task.host, deque()).append(task)

    while fetched < most:
        queue(shelves.freed())
        queue([] if todo else shelves.probe(last=True))
        if not todo:
            break
        for host in list(todo):
            tasks = todo[host]
            while tasks and shelves.takes("fetch", tasks[0]):
                tasks.popleft()
            if not tasks:
                del todo[host]
                continue
            task = tasks.popleft()
            fetched += 1
            if fetched % SHARE == 0:
                queue(shelves.probe(last=False))
            visit = _fetch(web, task, digests)
            door, target = web.door(task.host), path_of(task.url)
            assert door is not None
            is_soft = door.host.trap == "soft404" and not target.startswith("/missing")
            if render.is_in_trap(door.host.trap, target) and not is_soft:
                (probed if task.url in shelves.probes else trapped)[host] += 1
            elif visit.is_page:
                pages.add(task.url)
            if not visit.found:
                learnt.observe(visit)
                continue
            links, _ = resolve_links(visit.found, visit.url, visit.url, cache)
            new = [
                Task(link.url, host_of(link.url), task.depth + 1, task.url, link.relation)
                for link in links
                if link.url not in seen and web.door(host_of(link.url))
            ]
            seen.update(one.url for one in new)
            learnt.observe(msgspec.structs.replace(visit, new=tuple(new)))
            queue([one for one in new if not shelves.takes("schedule", one)])
    kept = [((family.owner, family.part), task) for family, tasks in shelves.tasks.items() for task in tasks]
    doors = [(name, web.door(task.host), path_of(task.url)) for name, task in kept]
    pages_aside = (Role.PAGE, Role.ALIAS)
    lost = Counter(name for name, door, path in doors if door and web.locate(door.host, path)[0] in pages_aside)
    return Spent(trapped, probed, pages, fetched, Counter(name for name, _ in kept), lost), learnt


def _fetch(web: SimWeb, task: Task, digests: dict[str, str]) -> Visit:
    door = web.door(task.host)
    assert door is not None
    answer = web.answer(door, path_of(task.url), Conditions(), 0)
    fields = tuple(
        (name.lower().decode(), value.strip().decode())
        for name, _, value in (line.partition(b":") for line in answer.head.split(b"\r\n")[1:] if line)
    )
    outcome = Outcome.OK if answer.status == 200 else Outcome.CLIENT_ERROR
    visit = Visit(task, Response(outcome, answer.status, headers=fields, body=answer.body))
    location = visit.response.header("location")
    if location:
        return msgspec.structs.replace(visit, found=(Found(location, "redirect"),))
    if not visit.is_page:
        return visit
    digest = sha1_base32(answer.body)
    document = Document(visit)
    found = tuple(_HTML.process(document))
    first = digests.setdefault(digest, task.url)
    return msgspec.structs.replace(
        visit, title=document.title, found=found, digest=digest, duplicate_of=first if first != task.url else ""
    )


#: Directories below which a folder is mounted.
MOUNTS = ("", "/srv/pub/docs", "/srv/pub/docs/mirror/by/name/all")

#: Pages that are fetched at once: one host, which is ours.
AT_ONCE = "8"

#: Pages of a host of a simulated web, on average, and the share of its hosts that have a trap.
HOST_SIZE, TRAPPED = 100, 0.05

#: Serves a folder below a beginning of paths, and lists directories that have no index.
SERVER = """
import functools, http.server, os, sys
sys.stderr = open(os.devnull, "w")  # a crawl breaks connections off
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


def crawled(folder: Path, mount: str, start: str, *options: str) -> tuple[set[str], dict[str, object], float]:
    """Paths below the mount that were fetched, the line that the crawl ended with, and the seconds that it took."""
    server = [sys.executable, "-P", "-c", SERVER, str(folder), mount]
    with serving(server) as (port, _), tempfile.TemporaryDirectory(prefix="honest-") as place:
        url, directory = f"http://127.0.0.1:{port}{mount}/", Path(place, "c")
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
