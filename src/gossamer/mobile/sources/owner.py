"""The rights that an owner gives: a sheet says what a runtime serves and refuses (docs/runtime.md), and the gate keeps to it.

Place in the flow: the command line reads a sheet here, out of `runtime.toml` and `--serve` options, and
:class:`~gossamer.mobile.sources.opened.Runtime` opens its sources. The runner asks the gate
(:class:`~gossamer.mobile.running.Fetch`): every URL passes the sheet and the site's robots.txt before a source is asked
(decision 82). A refusal has a name, is counted, and is remembered with its first examples for the owner. The crawler itself learns
only that the URL is blocked.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gossamer.engine.files import text_in, toml_of
from gossamer.engine.sheet import nearest
from gossamer.engine.unit import Clock
from gossamer.expressions.compiling import Expression
from gossamer.expressions.syntax import ExpressionError
from gossamer.frontier.robots.contract import RobotsGate, RobotsRuling, RobotsVerdict
from gossamer.mobile.contract import PageSource, Withheld
from gossamer.mobile.crawler import CrawlerRefused
from gossamer.mobile.reading import converted, with_numbers
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.outcome import DOCUMENTS, Outcome
from gossamer.values.task import Task
from gossamer.values.url import canonical, endpoint_of, host_of, scheme_of, site_of
from gossamer.values.visit import Response

#: The name in the place of a host under which a stored crawl or WARC files are served, with all the hosts in them.
ARCHIVE = "archive"

#: Bytes of the largest sheet: ten thousand hosts fit.
_MAX_FILE = 1 << 20

_UNITS = {
    "time": "s",
    "cpu": "s",
    "delay": "s",
    "keep": "s",
    "bytes": "bytes",
    "max_page_size": "bytes",
    "memory": "bytes",
    "kept": "bytes",
    "disk": "bytes",
}

SourceKind = Literal["files", "server", "archive"]


class ServedHost(msgspec.Struct, frozen=True):
    """One `--serve`, read and checked."""

    kind: SourceKind
    place: str
    """A path, or the origin of a local server as `http://127.0.0.1:8080`."""
    host: str = ""
    """Name, with the port where URLs have one; empty for an archive, which serves the hosts that it holds."""
    scheme: str = ""
    """The scheme under which the site is known, where the owner says so: URLs of the other one are redirected to it."""

    @property
    def home(self) -> str:
        return f"{self.scheme or 'https'}://{self.host}/"


class OwnerLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much one crawler may take. At a limit of pages, bytes or time it is refused everything else."""

    requests: Annotated[int, Meta(ge=1)] = 1_000_000
    bytes: Annotated[int, Meta(ge=1)] = 100_000_000_000
    """Of all documents that it is given."""
    time: Annotated[float, Meta(gt=0)] = 86_400.0
    """Seconds since its first request."""
    max_page_size: Annotated[int, Meta(ge=1)] = 16 << 20
    """Bytes of one document; a longer one is cut."""
    cpu: Annotated[float, Meta(ge=1, le=1e9)] = 3_600.0
    """Seconds of processor time of its process, which is ended then."""
    memory: Annotated[int, Meta(ge=64 << 20)] = 512 << 20
    """Bytes of its process, beside those that any such process takes, some 100 MB."""
    kept: Annotated[int, Meta(ge=1)] = 256 << 20
    """Bytes of its results that are kept; it waits until its sender has taken some."""


class SenderRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rights of one sender, where they are less than the sheet gives every key."""

    hosts: tuple[str, ...] | None = None
    """Hosts that its crawlers may visit, as `serve` names them without a scheme; all that are served where it is left out."""
    crawlers: Annotated[int, Meta(ge=1)] | None = None
    """How many of its crawlers run at once."""


class OwnerSheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rights that an owner gives, and the limits."""

    serve: dict[str, str] = {}
    """Host -> folder or URL of a local server; `archive` -> crawl directory, WARC file or folder of them."""
    refuse: tuple[str, ...] = ()
    """Expressions; a URL for which one of them holds is refused."""
    ignore_htaccess: tuple[str, ...] = ()
    """Hosts whose directories are served although they have `.htaccess` files."""
    delay: Annotated[float, Meta(ge=0)] = 1.0
    """Seconds between two requests to a local server; a longer Crawl-delay of its robots.txt is kept."""
    limits: OwnerLimits = OwnerLimits()
    listen: str = ""
    """Address and port at which senders are listened to; empty for the default."""
    allow: tuple[str, ...] = ()
    """Installed processors that crawlers may use."""
    crawlers: Annotated[int, Meta(ge=1, le=256)] = 2
    """How many crawlers run at once, of all senders."""
    waiting: Annotated[int, Meta(ge=1, le=100_000)] = 100
    """How many crawlers of one sender may be here that have not ended, or whose results it has not taken."""
    keep: Annotated[float, Meta(gt=0)] = 86_400.0
    """Seconds after the last word of its sender until a crawler is ended and forgotten, with its results."""
    disk: Annotated[int, Meta(ge=1)] = 4 << 30
    """Bytes of all results that are kept; crawlers wait when there is no room."""
    senders: dict[str, SenderRules] = {}
    """Rules for some senders, by name."""

    def rules(self, sender: str) -> SenderRules:
        return self.senders.get(sender, SenderRules())

    def hosts(self) -> tuple[ServedHost, ...]:
        """The hosts that are served, in order. Raises UsageError: an entry cannot be read."""
        return tuple(_host(name, place) for name, place in self.serve.items())

    def refusals(self) -> tuple[Expression, ...]:
        """The expressions of `refuse`, compiled. Raises UsageError: one cannot be read."""
        found: list[Expression] = []
        for source in self.refuse:
            try:
                found.append(Expression(source, "schedule"))
            except ExpressionError as error:
                raise UsageError(f"refuse {source!r}: {' '.join(str(error).split())}") from None
        return tuple(found)


def read_sheet(path: Path | None, serve: Sequence[str] = ()) -> OwnerSheet:
    """The sheet of a TOML file, or of options alone, with the entries of `--serve` in the place of its own for the same host.
    Raises UsageError: something cannot be read, or nothing is served; one line."""
    sheet = (
        OwnerSheet()
        if path is None
        else parse_sheet(
            text_in(path, UsageError, most=_MAX_FILE, remedy="; serve fewer hosts with one runtime"), str(path)
        )
    )
    given: dict[str, str] = {}
    for entry in serve:
        name, sign, place = entry.partition("=")
        if not sign or not name or not place:
            raise UsageError(f"--serve {entry!r}: write HOST=FOLDER, HOST=http://ADDRESS:PORT or archive=DIR")
        if name in given:
            raise UsageError(f"--serve {name}: given twice; one host has one source")
        given[name] = place
    sheet = msgspec.structs.replace(sheet, serve={**sheet.serve, **given})
    if not sheet.serve:
        raise UsageError("nothing is served; give --serve HOST=FOLDER, HOST=http://ADDRESS:PORT or archive=DIR")
    _check(sheet)
    return sheet


def parse_sheet(text: str, source: str = "runtime.toml") -> OwnerSheet:
    """The sheet that a text in TOML describes; `source` is what messages call the text.
    Raises UsageError: it describes none; one line with the place."""
    plain = toml_of(text, source, UsageError)
    try:
        plain = with_numbers(plain, _UNITS)
        if isinstance(limits := plain.get("limits"), dict):
            plain["limits"] = with_numbers(limits, _UNITS, "limits.")
        sheet: OwnerSheet = converted(plain, OwnerSheet, _TABLES)
    except CrawlerRefused as refusal:
        raise UsageError(f"{source}: {refusal}") from None
    return sheet


_TABLES: dict[str, type[msgspec.Struct]] = {"": OwnerSheet, "limits": OwnerLimits, "senders[]": SenderRules}


def _check(sheet: OwnerSheet) -> None:
    hosts = sheet.hosts()
    names = [one.host for one in hosts]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"serve {twice}: given twice; one host has one source")
    sheet.refusals()
    files = {one.host for one in hosts if one.kind == "files"}
    for name in sheet.ignore_htaccess:
        if name not in files:
            raise UsageError(f"ignore_htaccess {name!r}: no files are served for it{nearest(name, sorted(files))}")
    for sender, rules in sheet.senders.items():
        for name in rules.hosts or ():
            if name not in names and "" not in names:
                raise UsageError(f"senders.{sender}.hosts {name!r}: it is not served{nearest(name, sorted(names))}")


def _host(name: str, place: str) -> ServedHost:
    if name == ARCHIVE:
        return ServedHost("archive", place)
    scheme, sign, host = name.partition("://")
    if not sign:
        scheme, host = "", name
    try:
        url = canonical(f"{scheme or 'http'}://{host}/")
    except UnreadableUrl:
        url = ""
    wanted = ("http", "https") if sign else ("http",)
    if not url or scheme_of(url) not in wanted or url.count("/") != 3 or not url.endswith("/") or "@" in host:
        raise UsageError(
            f"serve {name!r}: not a host; write it as example.org, example.org:8080 or https://example.org"
        )
    known = site_of(url).partition("://")[2]
    if "://" not in place:
        return ServedHost("files", place, known, scheme)
    return ServedHost("server", _origin(name, place), known, scheme)


def _origin(name: str, place: str) -> str:
    """The local server, as an origin without a path. It may only be on this machine: nothing else is the owner's own."""
    try:
        url = canonical(place)
    except UnreadableUrl:
        url = ""
    if not url or scheme_of(url) != "http" or url != f"{site_of(url)}/":
        raise UsageError(f"serve {name}={place!r}: not a local server; write it as http://127.0.0.1:8080")
    address, _ = endpoint_of(url)
    if address not in ("127.0.0.1", "::1", "localhost"):
        raise UsageError(f"serve {name}={place}: not on this machine; write 127.0.0.1, [::1] or localhost")
    return site_of(url)


# The gate before the pages of one crawler.

#: First URLs of each refusal that are kept for the owner.
MAX_EXAMPLES = 5

#: Sites whose robots.txt is remembered for the owner: an archive answers for every host that a crawler thinks of.
MAX_SITES = 10_000

#: Requests for one site's robots.txt at one time: the file, and five redirects (RFC 9309, 2.3.1.2), with room for a 5xx.
_MAX_ASKED = 10

#: The reasons for which a URL is refused, by name: the words that an owner reads.
REASONS: Mapping[str, str] = {
    "not_served": "the host is not served here",
    "refused": "an expression of the owner's sheet refuses it",
    "robots_denied": "the site's robots.txt denies it",
    "robots_unreachable": "the site's robots.txt cannot be had, so nothing of the site may be fetched",
    "requests": "the crawler has used up its requests",
    "bytes": "the crawler has used up its bytes",
    "time": "the crawler has used up its time",
    "unsafe_path": "the path does not name a file below the root",
    "dotfile": "a name in the path begins with a dot",
    "server_side": "a server runs such files and does not show them; serve the host by its local server",
    "private": "not every user of this machine may read it",
    "outside": "a symbolic link leads out of the root",
    "htaccess": "a directory has .htaccess; serve the host by its local server, or name it in ignore_htaccess",
    "special": "it is neither a file nor a directory",
    "no_index": "the directory has no index file, and directories are never listed",
    "changed": "the file was replaced while it was opened",
    "damaged": "the stored record cannot be read",
}


class ServedSite(msgspec.Struct):
    """A host that is served, to all crawlers together."""

    source: PageSource
    scheme: str = ""
    """URLs of the other scheme are redirected to it; empty: both are served."""
    delay: float | None = None
    """Seconds between two requests at least; None where no server is asked, so that no pace is kept."""
    free_at: float = 0.0
    """When it may be asked again, on the monotonic clock."""
    turn: AbstractContextManager[object] = nullcontext()
    """Held while it is asked: a lock, where crawlers in several threads must not ask at once."""


class RefusalTally(msgspec.Struct):
    """How often something was refused, and what it was first."""

    count: int = 0
    examples: list[tuple[str, str]] = []
    """URL, and what exactly stood in the way."""


class RobotsNote(msgspec.Struct, frozen=True):
    """The result of a site's robots.txt."""

    state: str
    """In one word: `whole`, `missing`, ..."""
    sitemaps: tuple[str, ...] = ()


class GatedPages:
    """Answers for one crawler. Contract: :class:`~gossamer.mobile.running.Fetch`."""

    def __init__(
        self,
        sites: Callable[[str], ServedSite | None],
        robots: RobotsGate,
        clock: Clock,
        refusals: Sequence[Expression] = (),
        limits: OwnerLimits | None = None,
        rest: Callable[[float], None] = time.sleep,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        """Begin with nothing used up. `sites` gives the site for `host` or `host:port`, None for one that is not served; `robots`
        may be shared, since what it has learned of a site is asked for once a day, and `turn` is held while it is asked: a lock,
        where crawlers in several threads share it. The clock is for robots.txt and the limit of time; a URL for which one of the
        `refusals` holds is refused; `rest` waits this many seconds."""
        self._sites = sites
        self._robots = robots
        self._clock = clock
        self._refusals = tuple(refusals)
        self._limits = limits or OwnerLimits()
        self._rest = rest
        self._turn = turn or nullcontext()
        self._began: float | None = None
        self._requests = 0
        self._bytes = 0
        self.refused: dict[str, RefusalTally] = {}
        self.robots: dict[str, RobotsNote] = {}
        """The results of robots.txt, by site; of the first :data:`MAX_SITES`."""

    def __call__(self, task: Task) -> Response:
        """The answer for `task.url`; `blocked`, `robots_denied` or `robots_unreachable` where it is refused."""
        return self._told(task.url, self._judged(task))

    def _judged(self, task: Task) -> Response | Withheld:
        if used_up := self._used_up():
            return used_up
        site = self._site(task.url)
        if site is None:
            return Withheld("not_served")
        for expression in self._refusals:
            if not expression.judge(task):
                return Withheld("refused", expression.source)
        if site.scheme and scheme_of(task.url) != site.scheme:
            location = f"{site.scheme}:{task.url.partition(':')[2]}"
            return Response(Outcome.REDIRECT, 301, headers=(("location", location),))
        verdict = self.verdict(task.url)
        if verdict.ruling is RobotsRuling.DENIED:
            line = f" (line {verdict.line})" if verdict.line else ""
            return Withheld("robots_denied", f"{verdict.rule}{line}")
        if verdict.ruling is not RobotsRuling.ALLOWED:
            return Withheld("robots_unreachable", verdict.rule)
        return self._asked(site, task.url, verdict.delay)

    def _used_up(self) -> Withheld | None:
        now = self._clock.monotonic()
        self._began = now if self._began is None else self._began
        limits = self._limits
        if self._requests >= limits.requests:
            return Withheld("requests", f"limit: {limits.requests}")
        if self._bytes >= limits.bytes:
            return Withheld("bytes", f"limit: {limits.bytes}")
        return Withheld("time", f"limit: {limits.time:g} s") if now - self._began >= limits.time else None

    def _asked(self, site: ServedSite, url: str, delay: float = 0.0) -> Response | Withheld:
        """Ask when the site is free, and no other crawler asks. No crawler holds the turn while it waits."""
        self._requests += 1
        while True:
            with site.turn:
                wait = 0.0 if site.delay is None else site.free_at - self._clock.monotonic()
                if wait <= 0:
                    answer = site.source.answer(url)
                    if site.delay is not None:
                        site.free_at = self._clock.monotonic() + max(site.delay, delay)
                    break
            self._rest(wait)
        if isinstance(answer, Response) and answer.outcome in DOCUMENTS:
            self._bytes += len(answer.document)
        return answer

    def verdict(self, url: str) -> RobotsVerdict:
        """The verdict of robots.txt on a served URL; reads that file first where it is not known."""
        task, name = Task(url, host_of(url)), site_of(url)
        for _ in range(_MAX_ASKED):
            with self._turn:
                verdict = self._robots.judge(task, self._clock.now())
            if verdict.ruling is not RobotsRuling.FETCH_FIRST:
                return verdict
            site = self._site(verdict.url)
            found = Withheld("not_served") if site is None else self._asked(site, verdict.url)
            answer = self._told(verdict.url, found)  # one that is withheld may forbid anything, so it closes the site
            with self._turn:
                lesson = self._robots.learned(name, answer, self._clock.now())
            if name in self.robots or len(self.robots) < MAX_SITES:
                self.robots[name] = RobotsNote(lesson.event, lesson.sitemaps)
        return RobotsVerdict(RobotsRuling.WAIT, "robots.txt leads nowhere")

    def _site(self, url: str) -> ServedSite | None:
        return self._sites(site_of(url).partition("://")[2])

    def _told(self, url: str, found: Response | Withheld) -> Response:
        """The answer to a crawler. A refusal is noted for the owner, and gives nothing to explore what it may not have."""
        if isinstance(found, Response):
            return found
        tally = self.refused.setdefault(found.reason, RefusalTally())
        tally.count += 1
        if len(tally.examples) < MAX_EXAMPLES:
            tally.examples.append((url, found.told))
        if found.reason == "robots_denied":
            return Response(Outcome.ROBOTS_DENIED)
        return Response(Outcome.ROBOTS_UNREACHABLE if found.reason == "robots_unreachable" else Outcome.BLOCKED)
