"""The tools that the server has for a model: fetch, map, crawl, search, read, query, why; and its reach: hosts of a list, networks
that a person opened, and a budget. Nothing here knows the protocol.

Place in the flow: :mod:`gossamer.words.commands` offers these as tools. Every request to the web is a crawl of Gossamer's own,
in a process of its own, with robots.txt, politeness and guards as always. The tools ask before each, and hand the same rules to the
crawl, whose own guards obey them for links, redirects and addresses that names turn out to have.

Promises: content of pages is data: it is handed on, and nothing in it chooses what is done; a model names crawls by names that
the server gave, never by paths; SQL only reads, in a process with limits; long answers come in pages.
"""

import asyncio
import ipaddress
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine import processes
from gossamer.engine.worker import Use
from gossamer.engine.workers import WorkerFailed, answered
from gossamer.query.archive import ArchiveReader
from gossamer.values.errors import GossamerError, UnreadableUrl, UsageError
from gossamer.values.url import canonical, host_of, scheme_of
from gossamer.words.reading import TROUBLES, archived_words

#: Characters of one answer; what is behind comes with the cursor.
ANSWER = 20_000

#: URLs of one answer, rows of a table, and documents of a search.
URLS, ROWS, HITS = 200, 100, 10

#: Seconds that a fetch, the short crawl behind a map, and a question about tables may take; pages of such a crawl.
FETCH_SECONDS, MAP_SECONDS, QUERY_SECONDS, MAP_PAGES = 60.0, 60.0, 30, 40

# Answers questions about tables as the dashboard's console has them: named, since a subject imports no face.
_TABLES = Use("gossamer.query.reports:answer_tables", niceness=5, memory=1 << 30, seconds=QUERY_SECONDS)

#: Crawls at work at once.
MOST_JOBS = 2

#: Fetched documents whose text is remembered for its other pages, and seconds between two fetches from one host.
REMEMBERED, DELAY = 32, 1.0


#: Schemes that a model may ask for: no files of this machine.
SCHEMES = ("http", "https")


class ModelReach(msgspec.Struct, frozen=True):
    """Where a model may go."""

    hosts: tuple[str, ...] = ()
    """Hosts, each with those below it; `*` for every public one."""
    networks: tuple[str, ...] = ()
    """Private networks that may be reached all the same."""

    def checked(self, url: str) -> str:
        """The canonical form of a URL that may be reached.
        Raises UsageError: it may not; says why, and what a person can do."""
        try:
            wanted = canonical(url if "://" in url else f"https://{url}")
        except UnreadableUrl as error:
            raise UsageError(f"{url!r} is no URL: {error}") from None
        if scheme_of(wanted) not in SCHEMES:
            raise UsageError(f"{scheme_of(wanted)}: is out of reach: this server asks for http: and https: alone")
        host = host_of(wanted)
        if not self.hosts:
            raise UsageError(
                "this server reaches no host, only the crawls that it was given; its owner can start it with --host"
            )
        if not any(one in ("*", host) or host.endswith(f".{one}") for one in self.hosts):
            raise UsageError(f"{host} is out of reach: this server reaches {', '.join(self.hosts)}")
        if (host == "localhost" or host.endswith(".localhost")) and not self.networks:
            raise UsageError(f"{host} is this machine, which is out of reach; its owner can start it with --network")
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return wanted  # what its name stands for, the crawl judges when it connects
        allowed = [ipaddress.ip_network(one) for one in self.networks]
        if not address.is_global and not any(address in one for one in allowed if one.version == address.version):
            raise UsageError(f"{host} is not public, so it is out of reach; its owner can start it with --network")
        return wanted

    def options(self) -> list[str]:
        """Options of `gossamer crawl` that keep a crawl within."""
        rules = ["scheme(http, https)"]
        if "*" not in self.hosts:
            rules.append(f"host({', '.join(name for host in self.hosts for name in (host, f'*.{host}'))})")
        rule = " and ".join(rules)
        found = ["--filter", rule, "--filter", f"fetch: {rule}", "--set", "dns.seed_hosts=[]"]
        return [*found, *(part for network in self.networks for part in ("--allow-network", network))]


def read_reach(hosts: Sequence[str], networks: Sequence[str]) -> ModelReach:
    """Where a model may go, as a person wrote it. Raises UsageError: a host or a network is none."""
    names = []
    for host in hosts:
        if host == "*":
            names.append(host)
            continue
        try:
            name = host_of(canonical(f"http://{host.removeprefix('*.')}/"))
        except UnreadableUrl:
            name = ""
        if not name or "/" in host:
            raise UsageError(f"--host {host}: write the name of a host, as docs.example, or '*' for every public one")
        names.append(name)
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise UsageError(f"--network {network}: write a network, as 10.0.0.0/8: {error}") from None
    return ModelReach(tuple(names), tuple(networks))


class Budget:
    """Pages, bytes and seconds that a model may spend while the server runs."""

    def __init__(self, pages: int, size: int, seconds: float) -> None:
        self.pages, self.bytes, self.seconds = pages, size, seconds

    def __repr__(self) -> str:
        return f"<Budget {self.pages} pages, {self.bytes} bytes, {self.seconds:.0f} s>"

    def reserve(self, pages: int, seconds: float) -> tuple[int, float]:
        """Take pages and seconds for one task; what it does not use comes back.

        Returns:
            The bytes that it may fetch, and its seconds.

        Raises UsageError: there is not so much left.
        """
        if pages < 1:
            raise UsageError("ask for 1 page at least")
        if pages > self.pages:
            raise UsageError(f"{pages:,} pages are more than this server has left, which is {self.pages:,}")
        if self.bytes <= 0 or self.seconds < 1:
            raise UsageError("this server has spent its bytes or seconds; its owner can start it again")
        granted = min(seconds, self.seconds)
        self.pages -= pages
        self.seconds -= granted
        return self.bytes, granted

    def give_back(self, pages: int, seconds: float, spent: int) -> None:
        """Return the pages and seconds that a task did not use, and note the bytes that it fetched."""
        self.pages += max(0, pages)
        self.seconds += max(0.0, seconds)
        self.bytes -= spent


class Job(msgspec.Struct):
    """A crawl that a model started."""

    name: str
    url: str
    pages: int
    state: str = "running"
    """`running`, `finished` or `failed`."""
    told: dict[str, Any] = {}
    """The last words of the crawl."""
    error: str = ""


class Tools:
    """The tools over some crawls. One for each server."""

    def __init__(
        self, crawls: dict[str, Path], folder: Path, reach: ModelReach, budget: Budget, options: Sequence[str] = ()
    ) -> None:
        """Nothing is opened. `crawls` are those that a person lets models ask, by name; crawls of models go into `folder`, and
        get further `options`, as `--contact`."""
        self._crawls, self._folder, self._reach, self._budget = dict(crawls), folder, reach, budget
        self._options = list(options)
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._texts: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._hosts: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._asked: dict[str, float] = {}
        self._number = 0

    async def close(self) -> None:
        """End the crawls that are at work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def named(self, text: str) -> str:
        """A text with the names of crawls for their directories, which are no matter of a model's."""
        for name, place in self._crawls.items():
            text = text.replace(str(place), name)
        return text.replace(f"{self._folder}/", "")

    def crawls(self) -> dict[str, Any]:
        """The crawls that can be asked, and the budget that is left."""
        left = self._budget
        return {
            "crawls": sorted(self._crawls),
            "jobs": [msgspec.to_builtins(job) for job in self._jobs.values()],
            "hosts": list(self._reach.hosts),
            "budget": {"pages": left.pages, "bytes": max(0, left.bytes), "seconds": round(left.seconds)},
        }

    async def fetch(self, url: str, cursor: int = 0) -> dict[str, Any]:
        """One document as Markdown: fetched once, then read page by page."""
        wanted = self._reach.checked(url)
        if wanted in self._texts and cursor:
            self._texts.move_to_end(wanted)
            return _paged(self._texts[wanted], "markdown", cursor)
        host = host_of(wanted)
        async with self._hosts[host]:
            await asyncio.sleep(max(0.0, self._asked.get(host, -DELAY) + DELAY - time.monotonic()))
            directory, told = await self._crawl(wanted, 1, FETCH_SECONDS, "--depth", "0")
            self._asked[host] = time.monotonic()
            rows = (
                await self._ask(directory, "SELECT url, outcome, status, error FROM pages ORDER BY fetched_at", 20)
            )["rows"]
        read = [at for at, outcome, *_ in rows if outcome in ("ok", "truncated")]
        if not read:
            why = "; ".join(" ".join(str(part) for part in row[1:] if part) for row in rows)
            why = why or ", ".join(told.get("outcomes", {})) or "nothing was asked"
            raise UsageError(f"{wanted} brought no document: {why}")
        found = await asyncio.to_thread(_read, directory, read[-1])
        self._texts[wanted] = found
        while len(self._texts) > REMEMBERED:
            self._texts.popitem(last=False)
        return _paged(found, "markdown", cursor)

    async def map(self, url: str, contains: str = "", crawl: str = "", cursor: int = 0) -> dict[str, Any]:
        """The URLs of a host: of a crawl, or of a short one with the sitemaps of the site."""
        if crawl:
            wanted = _canonical(url)
            directory = self._directory(crawl)
        else:
            wanted = self._reach.checked(url)
            known = next((job.name for job in self._jobs.values() if job.url == wanted and job.state == "finished"), "")
            if not known:
                known = self._name()
                directory, told = await self._crawl(wanted, MAP_PAGES, MAP_SECONDS, "--sitemaps", "--depth", "1")
                self._crawls[known] = directory
                self._jobs[known] = Job(known, wanted, MAP_PAGES, "finished", told)
            crawl, directory = known, self._directory(known)
        host, like = (text.replace("'", "''") for text in (host_of(wanted), contains))
        own = f"SELECT url FROM pages WHERE host = '{host}'"  # noqa: S608  # quoted, and it only reads
        linked = f"{own} UNION SELECT target FROM links WHERE host(target) = '{host}'"  # noqa: S608

        async def rows_among(urls: str) -> list[list[str]]:
            sql = f"SELECT DISTINCT url FROM ({urls}) WHERE contains(url, '{like}') ORDER BY url"  # noqa: S608
            answer = await self._ask(directory, f"{sql} LIMIT {URLS + 1} OFFSET {max(0, cursor)}", URLS + 1)
            return list(answer["rows"])

        try:
            rows = await rows_among(linked)
        except UsageError:  # a crawl without the table of links
            rows = await rows_among(own)
        found: dict[str, Any] = {"crawl": crawl, "urls": [one for (one,) in rows[:URLS]]}
        return found | ({"next_cursor": cursor + URLS} if len(rows) > URLS else {})

    async def crawl(self, url: str, pages: int = 50, depth: int = 3) -> dict[str, Any]:
        """Start a crawl of a site; it returns at once, with the name to ask for."""
        wanted = self._reach.checked(url)
        if sum(job.state == "running" for job in self._jobs.values()) >= MOST_JOBS:
            raise UsageError(f"{MOST_JOBS} crawls are at work; ask again when one has ended")
        if not 0 <= depth <= 100:
            raise UsageError("depth is 0 to 100")
        seconds = 10.0 + 3.0 * pages
        granted = self._budget.reserve(pages, seconds)
        job = Job(self._name(), wanted, pages)
        self._jobs[job.name] = job
        task = asyncio.get_running_loop().create_task(self._run_job(job, granted, depth))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        found: dict[str, Any] = msgspec.to_builtins(job)
        return found | {"next": f"ask job with {job.name!r}, then search, read or query that crawl"}

    async def _run_job(self, job: Job, granted: tuple[int, float], depth: int) -> None:
        try:
            self._crawls[job.name] = self._folder / job.name
            more = ("--depth", str(depth), "--index", "--analysis", "full")
            job.told = await self._run_crawl(job.name, job.url, job.pages, granted, *more)
            job.state = "finished"
        except GossamerError as error:
            job.state, job.error = "failed", self.named(str(error))

    def job(self, name: str) -> dict[str, Any]:
        """How a crawl stands that a model started."""
        if name not in self._jobs:
            raise UsageError(f"there is no job {name!r}; there are {', '.join(self._jobs) or 'none'}")
        found: dict[str, Any] = msgspec.to_builtins(self._jobs[name])
        return found

    async def search(self, crawl: str, words: str, cursor: int = 0) -> dict[str, Any]:
        """Documents of a crawl that contain words."""
        place = str(self._directory(crawl))
        found = await self._gossamer(
            "search", place, "--json", "-n", str(HITS), "--start", str(max(0, cursor)), "--", words
        )
        answer: dict[str, Any] = msgspec.json.decode(found)
        if answer.get("total", 0) > cursor + HITS:
            answer["next_cursor"] = cursor + HITS
        return answer

    async def read(self, crawl: str, url: str, cursor: int = 0) -> dict[str, Any]:
        """A document of a crawl as Markdown."""
        found = await asyncio.to_thread(_read, self._directory(crawl), _canonical(url))
        return _paged(found, "markdown", cursor)

    async def query(self, crawl: str, sql: str, cursor: int = 0) -> dict[str, Any]:
        """The answer of a crawl's tables to one question in SQL, which can only read."""
        most = max(0, cursor) + ROWS
        answer = await self._ask(self._directory(crawl), sql, most)
        rows = answer["rows"][max(0, cursor) :]
        found = {"columns": answer["columns"], "rows": rows}
        return found | ({"next_cursor": most} if answer["is_more"] else {})

    async def why(self, crawl: str, url: str) -> dict[str, Any]:
        """The story of a URL in a crawl."""
        found = await self._gossamer("why", str(self._directory(crawl)), "--json", "--", _canonical(url))
        story: dict[str, Any] = msgspec.json.decode(found)
        return story

    def _directory(self, crawl: str) -> Path:
        if crawl not in self._crawls:
            raise UsageError(f"there is no crawl {crawl!r}; there are {', '.join(sorted(self._crawls)) or 'none'}")
        return self._crawls[crawl]

    def _name(self) -> str:
        while True:
            self._number += 1
            name = f"job-{self._number}"
            if name not in self._crawls and not (self._folder / name).exists():
                return name

    async def _crawl(self, url: str, pages: int, seconds: float, *more: str) -> tuple[Path, dict[str, Any]]:
        """A short crawl, whose end is waited for."""
        name = self._name()
        told = await self._run_crawl(name, url, pages, self._budget.reserve(pages, seconds), *more)
        return self._folder / name, told

    async def _run_crawl(
        self, name: str, url: str, pages: int, granted: tuple[int, float], *more: str
    ) -> dict[str, Any]:
        size, seconds = granted
        limits = f"--max-pages {pages} --max-bytes {size} --max-time {seconds:.0f}s --linger 0s".split()
        place = str(self._folder / name)
        begun = time.monotonic()
        told: dict[str, Any] = {}
        try:
            arguments = ("crawl", url, "-o", place, "--json", *limits, *self._reach.options(), *more, *self._options)
            # Limits that are reached and sites that answer nothing are told in the answer, not by the status.
            told = msgspec.json.decode(await self._gossamer(*arguments, deadline=seconds + 30, allowed=(0, 3, 4)))
            return told | {"crawl": name}
        finally:
            unused = pages - max(1, int(told.get("fetched", 0)))
            self._budget.give_back(unused, seconds - (time.monotonic() - begun), int(told.get("bytes", 0)))

    async def _ask(self, directory: Path, sql: str, rows: int) -> dict[str, Any]:
        question = {"directory": str(directory), "rows": rows, "sql": sql}
        try:
            answer = await answered(_TABLES, question, 2.0 * QUERY_SECONDS)
        except WorkerFailed as error:
            raise UsageError(str(error)) from None
        [found] = msgspec.json.decode(answer)
        return dict(found)

    async def _gossamer(self, *arguments: str, deadline: float = 120.0, allowed: Sequence[int] = (0,)) -> bytes:
        """The output of a command in a process of its own. Raises UsageError: it failed, or took too long."""
        process = await processes.begun("gossamer", *arguments, stdin=DEVNULL, stderr=PIPE)
        try:
            async with asyncio.timeout(deadline):
                out, complaint = await process.communicate()
        except TimeoutError:
            raise UsageError(f"this took longer than {deadline:.0f} s, and was ended") from None
        finally:
            processes.kill(process)
            await process.wait()
        if process.returncode not in allowed or (not out and process.returncode):
            lines = complaint.decode("utf-8", "replace").strip().splitlines()
            raise UsageError(
                (lines[-1] if lines else f"it ended with status {process.returncode}").removeprefix("gossamer: ")
            )
        return out


def _canonical(url: str) -> str:
    try:
        return canonical(url)
    except UnreadableUrl as error:
        raise UsageError(f"{url!r} is no URL: {error}") from None


def _read(directory: Path, url: str) -> dict[str, Any]:
    """A document of a crawl in words."""
    words = archived_words(url, ArchiveReader(directory).document(url))
    facts = {name: text for name, text in msgspec.to_builtins(words.metadata).items() if text}
    found = {"url": url, "title": words.title, **facts, "markdown": words.markdown}
    return found | ({"remark": TROUBLES[words.trouble]} if words.trouble else {})


def _paged(found: dict[str, Any], name: str, cursor: int) -> dict[str, Any]:
    """An answer with one page of its long text."""
    text = found[name]
    start = max(0, cursor)
    end = start + ANSWER
    if end < len(text):
        end = text.rfind("\n", start + ANSWER // 2, end) + 1 or end
    page = found | {name: text[start:end]}
    return page | ({"next_cursor": end, "characters": len(text)} if end < len(text) else {})
