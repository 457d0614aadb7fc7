"""The things that would hinder a crawl on this machine, or going on with one, found before it starts.

Place in the flow: `gossamer doctor` prints these findings. Each check looks at one thing, changes nothing, and says what to do.
"""

import asyncio
import importlib.metadata
import locale
import os
import platform
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from gossamer._version import __version__
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.client import holder
from gossamer.crawls.control.wire import folders, is_private
from gossamer.crawls.identity import contact_of
from gossamer.crawls.machine import OPEN_FILES, free_memory
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.sheet import show_bytes, show_count
from gossamer.fetcher.cares import DnsResolver, DnsSheet
from gossamer.fetcher.driver import version as libcurl_version
from gossamer.storage.tables.places import begun_crawl
from gossamer.values.errors import AddressRefused, GossamerError, ResolutionFailed

Verdict = Literal["ok", "note", "bad"]

#: Open files with which a crawl of the default size does without trouble: sockets, archive and ledger.
FEW_FILES = 1_024

#: Bytes of free disk below which a crawl soon waits for room, and of free memory below which an agent may be killed.
LITTLE_DISK = 1_000_000_000
LITTLE_MEMORY = 500_000_000

#: Libraries whose version explains a difference between two machines.
LIBRARIES = ("pycurl", "rocksdict", "selectolax", "ada-url", "duckdb", "uvloop")

#: Seconds that a look-up may take before it slows a crawl down.
SLOW_LOOK_UP = 1.0


class Finding(msgspec.Struct, frozen=True):
    verdict: Verdict
    """`bad` hinders a crawl; `note` is to be known."""
    about: str
    text: str
    advice: str = ""
    """The thing to do about it; empty where nothing is to be done."""


def examine(directory: str, host: str) -> list[Finding]:
    """Look at everything: at the crawl in a directory, where one is given, otherwise at the disk of the current folder; and at
    the name of a host, where one is given."""
    place = Path(directory or ".")
    checks: list[Callable[[], Iterator[Finding]]] = [
        _versions,
        _locale,
        _open_files,
        _memory,
        lambda: _disk(place),
        _runtime_folder,
        _isolation,
        _browser,
        lambda: _names(host),
        lambda: _identity(os.environ),
    ]
    if directory:
        checks.append(lambda: _crawl(directory))
    return [finding for check in checks for finding in check()]


def _judged(is_fine: bool, about: str, text: str, trouble: str, advice: str, verdict: Verdict = "bad") -> Finding:
    return Finding("ok", about, text) if is_fine else Finding(verdict, about, trouble, advice)


def _versions() -> Iterator[Finding]:
    yield Finding(
        "ok", "gossamer", f"{__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}"
    )
    found = []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    yield Finding("ok", "libraries", ", ".join(found))
    yield Finding("ok", "libcurl", libcurl_version())


def _locale() -> Iterator[Finding]:
    encoding = locale.getencoding()
    trouble, advice = "characters that it lacks are shown as escapes", "set LC_ALL=C.UTF-8 to see them as they are"
    is_fine = encoding.lower().replace("-", "") == "utf8"
    yield _judged(is_fine, "locale", encoding, f"{encoding}: {trouble}", advice, "note")


def _open_files() -> Iterator[Finding]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    usable = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    text = f"{usable:,} can be used"
    advice = f"raise the limit (ulimit -Hn), or crawl with --concurrency {max(1, usable // 4)}"
    trouble = f"{text}, and a crawl needs {FEW_FILES:,}"
    yield _judged(usable >= FEW_FILES, "open files", text, trouble, advice)


def _memory() -> Iterator[Finding]:
    free = free_memory()
    if free is not None:  # otherwise the system does not say so
        text = f"{show_bytes(free)} available"
        trouble = f"{text}, and an agent may take 400 MB"
        yield _judged(free >= LITTLE_MEMORY, "memory", text, trouble, "end other programs")


def _disk(place: Path) -> Iterator[Finding]:
    there = next(folder for folder in (place.resolve(), *place.resolve().parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if not os.access(there, os.W_OK):
        yield Finding("bad", "disk", f"{there} cannot be written", "name another directory with -o")
    else:
        text = f"{show_bytes(free)} free at {there}"
        yield _judged(free >= LITTLE_DISK, "disk", text, f"{text}: a crawl soon waits for room", "free some space")


def _runtime_folder() -> Iterator[Finding]:
    found = next((folder for folder in folders() if is_private(folder) or not folder.exists()), None)
    yield _judged(
        found is not None,
        "control",
        f"crawls listen for commands in {found}",
        "no folder is private enough for the socket that takes commands",
        "set XDG_RUNTIME_DIR to a folder that is yours alone (mode 0700)",
    )


def _isolation() -> Iterator[Finding]:
    """By a process that shuts itself in, as those of mobile crawlers do."""
    from gossamer.mobile.runtime.keeper import walls_here  # few commands need it

    walls = walls_here()
    trouble = f"a runtime cannot shut crawlers in here: {walls}"
    advice = "see docs/runtime.md, Isolation; crawls do not need it"
    yield _judged(walls.is_whole, "isolation", str(walls), trouble, advice, "note")


def _browser() -> Iterator[Finding]:
    """By a browser that is started as a crawl starts it."""
    from gossamer.browser.chromium import Chromium, program  # few commands need it

    async def told() -> Finding:
        browser = await Chromium.start(program())
        await browser.stop()
        if browser.missing:
            text = f"{browser.version}, kept from the network by a dead proxy, for it can have none of its own ({browser.missing})"
            return Finding("note", "browser", text, "allow namespaces of users and networks for a wall of the kernel's")
        return Finding("ok", "browser", f"{browser.version}, with a network of its own without interfaces")

    try:
        yield asyncio.run(told())
    except GossamerError as error:
        yield Finding("note", "browser", str(error), "only crawls with --render need one")


def _names(host: str) -> Iterator[Finding]:
    if not host:
        return
    began = time.monotonic()
    try:
        address = asyncio.run(_looked_up(host))
    except (AddressRefused, ResolutionFailed) as error:
        yield Finding(
            "bad", "names", str(error), "check the network and /etc/resolv.conf, or name servers with dns.servers"
        )
        return
    taken = time.monotonic() - began
    text = f"{host} is {address}, looked up in {taken * 1000:.0f} ms"
    advice = "a resolver on this machine makes crawls of many hosts faster"
    yield _judged(taken <= SLOW_LOOK_UP, "names", text, text, advice, "note")


async def _looked_up(host: str) -> str:
    # Nothing is sent to the address: which ones a crawl may reach is of no matter here.
    resolver = DnsResolver(DnsSheet(only_loopback=False, seed_hosts=(host,)))
    await resolver.start()
    try:
        return (await resolver.resolve(host, 443)).address
    finally:
        await resolver.stop()


def _identity(environment: Mapping[str, str]) -> Iterator[Finding]:
    try:
        contact = contact_of(CrawlOptions())
    except GossamerError as error:
        yield Finding("bad", "contact", str(error), "set GOSSAMER_CONTACT anew")
    else:
        text = f"site owners can write to {contact}" if contact else "GOSSAMER_CONTACT is not set"
        yield Finding(
            "ok" if contact else "note", "contact", text, "" if contact else "give --contact beyond this machine"
        )
    proxies = sorted(name for name in environment if name.lower() in ("http_proxy", "https_proxy", "all_proxy"))
    if proxies:
        yield Finding(
            "note", "proxy", f"{', '.join(proxies)} in the environment: not used", "give --proxy if it is wanted"
        )


def _crawl(directory: str) -> Iterator[Finding]:
    try:
        place = begun_crawl(directory)
        process = holder(place)
        if process:
            yield Finding("ok", "crawl", f"process {process} is at work in {place}")
            return
        standing = standing_at_rest(place)
    except GossamerError as error:
        yield Finding("bad", "crawl", str(error), f"gossamer verify {directory} says more")
        return
    pages, queued = show_count(standing.pages, "page"), f"{standing.queued:,} queued"
    yield Finding("ok", "crawl", f"{standing.state}: {pages}, {queued}; its ledger opens")
