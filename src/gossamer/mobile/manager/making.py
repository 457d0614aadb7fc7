"""The settings of the crawler manager, the crawlers that are made of them, and the keys of the runtimes to which they go.

Place in the flow: the manager has URLs that wait, and asks here for the crawler that is to go after them. Links ask for the key and
pin of a runtime elsewhere when they are opened. Neither stands in `crawl.toml`: a key is a secret (design question 19).
"""

import os
import stat
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gossamer.engine.sheet import Sheet, setting, written
from gossamer.mobile.crawler import (
    MAX_SEEDS,
    VERSION,
    BringRules,
    BroughtPart,
    CrawlerFacts,
    MobileCrawler,
    MobileProgram,
    TravelLimits,
)
from gossamer.mobile.options import BroughtElements, Irrelevant
from gossamer.values import settings
from gossamer.values.errors import UsageError
from gossamer.values.task import Task
from gossamer.values.url import host_of

#: URLs out of scope that one crawler brings home at most, where the crawl wants them.
MAX_EXTERNAL = 100_000

_fixed = partial(setting, restart="crawlers are on their way with it")


class CrawlersSheet(Sheet, frozen=True):
    scope: Annotated[settings.Scope, _fixed("Keep crawlers within this scope.")] = "host"
    seeds: Annotated[tuple[str, ...], _fixed("Draw the scope around these URLs.")] = ()
    follow: Annotated[str, _fixed("Let crawlers follow a link only if this expression is true of it.")] = ""
    expand: Annotated[str, _fixed("Let crawlers follow links of a page only if this expression is true of it.")] = ""
    store: Annotated[str, _fixed("Let crawlers bring a document only if this expression is true of it.")] = ""
    traversal: Annotated[
        Literal["breadth", "depth", "host-breadth"], _fixed("Let crawlers visit pages in this order.")
    ] = "breadth"
    depth: Annotated[settings.Depth, _fixed("Let crawlers follow at most this many links in a row.")] = None
    urls: Annotated[settings.MaxPerHost, setting("Let crawlers visit at most this many URLs of a host.")] = None
    parts: Annotated[tuple[BroughtPart, ...], _fixed("Bring these parts of a relevant document home.")] = ("whole",)
    elements: Annotated[BroughtElements, _fixed()] = ()
    irrelevant: Annotated[Irrelevant, _fixed()] = "counts"
    seconds: Annotated[float, setting("Let a crawler work for at most this long.", unit="s", gt=0)] = 86_400.0
    brought: Annotated[
        int, setting("Let a crawler bring home at most this many bytes, before compression.", unit="bytes", ge=1)
    ] = 10_000_000_000
    most: Annotated[int, setting("Keep at most this many crawlers at runtimes at once.", unit="crawlers", ge=1)] = 64
    hosts: Annotated[int, setting("Send one crawler to at most this many hosts of a runtime.", unit="hosts", ge=1)] = 1
    per_host: Annotated[
        int, setting("Divide the URLs of a host among at most this many crawlers.", unit="crawlers", ge=1)
    ] = 1
    gather: Annotated[
        float, setting("Wait this long for more URLs of a host before sending a crawler.", unit="s", gt=0)
    ] = 0.5  # a page names many URLs at once, and a crawler costs as much for one as for a thousand
    lease: Annotated[
        float, setting("Count a crawler as lost if its runtime is silent for this long.", unit="s", gt=0)
    ] = 600.0
    reach: Annotated[
        float,
        setting(
            "Count a crawler as lost if its runtime cannot be reached for this long before the crawler starts.",
            unit="s",
            ge=0,
        ),
    ] = 30.0
    tries: Annotated[
        int, setting("Fetch a host without crawlers after this many crawlers were lost.", unit="crawlers", ge=1)
    ] = 2

    def __post_init__(self) -> None:
        """Refuse what no crawler can be made of."""
        if not (self.parts or self.elements):
            raise ValueError("setting 'parts': a crawler that brings nothing is sent for nothing")


def crawler_for(
    sheet: CrawlersSheet, tasks: Sequence[Task], identity: str, pages: int | None = None, version: int = VERSION
) -> MobileCrawler:
    """The crawler that goes after these tasks, at most `MAX_SEEDS` of one runtime's hosts, which are those that it is granted.
    It may visit so many pages, or any number where the crawl has no limit. It is of a version that the runtime knows."""
    hosts = sorted({task.host for task in tasks})
    leads_out = sheet.scope in ("any", "domain") or not {host_of(seed) for seed in sheet.seeds} <= set(hosts)
    is_around_seeds = sheet.scope in ("page", "prefix")
    around = [seed for seed in sheet.seeds if host_of(seed) in hosts] if is_around_seeds else []
    limits = TravelLimits(
        depth=sheet.depth, external=MAX_EXTERNAL if leads_out else 0, brought=sheet.brought, seconds=sheet.seconds
    )
    if pages is not None:
        limits = msgspec.structs.replace(limits, pages=max(1, pages))
    if sheet.urls is not None:
        limits = msgspec.structs.replace(limits, urls=min(limits.urls, sheet.urls * len(hosts)))
    program = MobileProgram(
        tuple(task.url for task in tasks),
        name="gossamer",
        scope=sheet.scope if sheet.scope in ("page", "prefix") else "host",
        around=tuple(around[:MAX_SEEDS] if is_around_seeds else (f"http://{host}/" for host in hosts)),
        traversal=sheet.traversal,
        follow=sheet.follow,
        expand=sheet.expand,
        store=sheet.store,
        limits=limits,
        bring=BringRules(sheet.parts, sheet.elements, sheet.irrelevant, errors=True),
        version=version,
    )
    depths = tuple(task.depth for task in tasks)
    return MobileCrawler(program, CrawlerFacts(depths=depths if any(depths) else ()), identity)


#: Variables of the environment, for crawls with one runtime.
KEY, PIN = "GOSSAMER_RUNTIME_KEY", "GOSSAMER_RUNTIME_PIN"


class RuntimeKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Key and pin of one runtime."""

    key: str
    pin: str = ""


def runtime_key(address: str, file: str) -> RuntimeKey:
    """The key and pin of the runtime at an address, as `--runtime` has it: out of a TOML file with a table for each address,
    or, where none is given, of the environment. Raises UsageError: there is none; says what to do."""
    if not file:
        key = os.environ.get(KEY, "")
        if not key:
            raise UsageError(f"runtime {address}: its key is not known; set {KEY}, or name a file: --runtime-keys FILE")
        return RuntimeKey(key, os.environ.get(PIN, ""))
    known = _read(Path(file))
    found = known.get(address) or known.get(address.rstrip("/"))
    if found is None:
        raise UsageError(f'{file}: no key for {address}; add a table ["{address}"] with key = "..."')
    return found


def _read(path: Path) -> dict[str, RuntimeKey]:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise UsageError(f"{path} holds keys, and others can read it; run: chmod 600 {path}")
            plain = tomllib.loads(written(file.read()))
        return msgspec.convert(plain, dict[str, RuntimeKey])
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f'{path}: not keys of runtimes: {error}; write ["https://ADDRESS"] and key = "..."') from None
