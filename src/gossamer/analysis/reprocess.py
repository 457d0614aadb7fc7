"""Processors over the stored archive, without a request: the stages between fetch and commit, run again.

Place in the flow: `gossamer reprocess` and the Python interface call :func:`reprocess`. The wiring of the crawl, or another one, is
cut at both ends (:func:`between`): a producer that reads visits out of the archive stands where fetch was, a consumer that writes
rows where commit was. Stages that remember other pages (content-seen, URL-seen) are left out: what they decided is in the tables.
Near-duplicates are compared anew, in the order of the archive, since texts may be read otherwise. Then the tables are switched to
the new rows at once (:mod:`gossamer.query.table_rewrites`).
"""

import contextlib
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.analysis.archive_runs import PART_BYTES, RULINGS, ArchivePart, ArchiveRun, Mapped, in_parts
from gossamer.browser.again import KEPT_ANSWERS, rendered_again
from gossamer.browser.options import RENDER
from gossamer.crawls.builder import with_structured_data
from gossamer.crawls.catalog import catalog as shipped_catalog
from gossamer.crawls.control.client import holder
from gossamer.crawls.crawlers import gathered
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.followers import Following
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import UnknownName, WiringError
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.sheet import nearest
from gossamer.engine.wiring import MAIN_PROCESS, ComponentPlan, ConnectorPlan, ProviderPlan, Wiring
from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.query.table_rewrites import basis, replace, replaceable
from gossamer.spiders.running import SpiderHandlers
from gossamer.spiders.spider_stage import SPIDER, with_spider
from gossamer.storage.tables.contract import table_named
from gossamer.storage.tables.log import TableLogSheet
from gossamer.storage.tables.places import crawl_directory, replacing
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.instants import utc_text
from gossamer.values.media_type import HTML_TYPES

_VISITS = """
SELECT url, host, status, outcome, depth, discovered_from, relation, attempt, fetched_at, elapsed_ms, ip, digest, dom_length,
       duplicate_of, bytes, truncated, error, notes, request, label, data, redirects, actions, session, brought, crawler,
       runtime, warc_file, warc_offset, warc_length, visit, render, render_seconds, wants, gained_links
FROM pages_all WHERE warc_file IS NOT NULL AND NOT noarchive AND kept_out IS NULL ORDER BY warc_file, warc_offset
"""


class Reprocessed(msgspec.Struct, frozen=True):
    crawl: str
    documents: int
    """Visits that were read and processed."""
    unreadable: int
    """Visits whose record is damaged or refers to what is not there: their rows stay as they were."""
    tables: dict[str, int]
    """Rows of the tables that were replaced."""
    seconds: float
    read_until: str = ""
    """When the newest visit that was read had been fetched, as the tables write it; empty where none was."""
    rendered: int = 0
    """Pages that a browser showed again."""
    rendered_alike: int = 0
    """Those of them whose markup is that of the archive, byte for byte."""
    is_at_work: bool = False
    """The crawl ran meanwhile: what it has fetched since then, it has processed itself."""


def reprocess(
    directory: str,
    *,
    wiring: Wiring | None = None,
    processors: Sequence[str] = (),
    rdf: bool = False,
    spider: type[SpiderHandlers] | None = None,
    render: bool = False,
    browser: str = "",
    catalog: Catalog | None = None,
    report: Callable[[str], object] = lambda line: None,
    mapped: Mapped | None = None,
) -> "Reprocessing":
    """Make ready to run processors over the archive of the crawl in `directory`.

    Args:
        wiring: whose processors run; the crawl's own where it is None.
        processors: run these alone, each `NAME` or `MIME=NAME`, and replace only items of the kinds that they find.
        rdf: also read the structured data of pages, as a crawl with `--rdf` does.
        spider: its handlers get the pages, as in a crawl; what they ask for is kept as links, and nothing is fetched.
        render: have a browser show pages again, with the answers of the archive alone.
        browser: the program that does it; if empty, the crawl's own, or the Chromium of this machine.
        catalog: where names are looked up.
        report: takes what goes wrong with what follows the crawl.
        mapped: runs parts of the archive on other machines. They find the wiring's units by names of installed packages.

    Raises:
        UsageError: there is no crawl, or no such processor; or the crawl has handlers, and they are not given.
        WiringError: the wiring has no stages to run.
    """
    wiring, catalog = wiring or crawl_wiring(directory), catalog or shipped_catalog()
    if mapped is not None and (render or spider is not None):
        raise UsageError("handlers of a spider and a browser are on this machine alone; leave --cluster out")
    if rdf:
        wiring = with_structured_data(wiring)
    if spider is not None:
        if processors:
            raise UsageError("give either --spider or --processor, not both")
        catalog.add(SPIDER, spider)
        wiring = with_spider(wiring, "")
    elif SPIDER in wiring.providers:
        if not processors:
            file = shlex.quote(wiring.providers[SPIDER].settings.get("file", ""))
            how = (
                f"gossamer reprocess {shlex.quote(directory)} --spider {file}"
                if file != "''"
                else "spider.reprocess(DIR)"
            )
            has = f"this crawl has handlers of its own; bring them with {how}"
            raise UsageError(f"{has}, or name processors with --processor")
        wiring = without_handlers(wiring)
    if render:
        wiring = rendered_again(wiring, crawl_directory(directory), browser)
    return Reprocessing(crawl_directory(directory), wiring, processors, catalog, report, mapped)


def crawl_wiring(directory: str) -> Wiring:
    """The wiring that a crawl ran with; where crawlers shared its queue, the one that does the same in one process.
    Raises UsageError: there is no crawl."""
    return gathered(read_wiring(crawl_directory(directory)))


class Reprocessing:
    """A run over an archive that is ready to begin."""

    def __init__(
        self,
        directory: Path,
        wiring: Wiring,
        processors: Sequence[str],
        catalog: Catalog,
        report: Callable[[str], object],
        mapped: Mapped | None = None,
    ) -> None:
        self.directory = directory
        self._report = report
        self._items_only = bool(processors)
        self._catalog = catalog
        self._run = ArchiveRun(directory, catalog)
        log = wiring.providers.get("log")
        self._asked = {*TableLogSheet().tables, *(log.settings.get("tables", ()) if log else ())}
        self.wiring = between(with_processors(wiring, processors, catalog))
        plan(self.wiring, catalog)
        self.part_bytes = PART_BYTES
        self._mapped = mapped
        if mapped is not None and any(one.use == "memory-fingerprints" for one in self.wiring.providers.values()):
            raise UsageError(
                "a cluster processes parts of an archive apart, and near-duplicates are sought among all pages; leave --cluster out"
            )

    async def run(self) -> Reprocessed:
        """Read, process, replace. Raises CrawlDirectoryError: another run is at it."""
        began, is_at_work = time.monotonic(), bool(holder(self.directory))
        with replacing(self.directory) as held:
            if not held:
                raise CrawlDirectoryError(
                    f"{self.directory} is being reprocessed by another process; wait until it ends"
                )
            convert(self.directory)
            # A table that is kept on request alone stays, unless it is asked for.
            before = basis(self.directory, _known(name for name in replaceable(self.directory) if name in self._asked))
            # The run has a directory of its own; those of runs that were killed go.
            state = self.directory / "state"
            state.mkdir(exist_ok=True)
            for left in state.glob("reprocess-*"):
                shutil.rmtree(left, ignore_errors=True)
            workspace = Path(tempfile.mkdtemp(prefix="reprocess-", dir=state))
            try:
                # Visits that are fetched meanwhile have been processed already: they are no part of the run.
                with Database(self.directory, before.files) as database:
                    answer = database.ask(_VISITS)
                    rows = (dict(zip(answer.columns, row, strict=True)) for row in answer)
                    if self._mapped is None:
                        await self._run.write(rows, self.wiring, tuple(before.tables), workspace)
                    else:
                        told = ArchivePart(str(self.directory.resolve()), self.wiring, tuple(before.tables))
                        self._run.counts = await in_parts(self._mapped, rows, told, workspace, self.part_bytes)
                tables = replace(self.directory, workspace, before, items_only=self._items_only)
            finally:
                shutil.rmtree(workspace, ignore_errors=True)
            convert(self.directory)
        # Followers of the crawl are made again out of the new rows; those of a crawl that runs do so themselves.
        following = Following(self.directory, CrawlOptions(), self._report, triples="triples" in self._asked)
        following.register()
        await following.start(once=True)
        await following.finish()
        counts = self._run.counts
        return Reprocessed(
            str(self.directory),
            counts.documents,
            counts.unreadable,
            tables,
            round(time.monotonic() - began, 3),
            utc_text(counts.newest) if counts.newest else "",
            rendered=counts.rendered,
            rendered_alike=counts.rendered_alike,
            is_at_work=is_at_work,
        )


def _known(names: Iterable[str]) -> list[str]:
    """Those tables whose packages are installed; the rows of the others stay as they are."""
    found = []
    for name in names:
        with contextlib.suppress(UnknownName):
            found.append(table_named(name).name)
    return found


# -- the wiring between the two ends


#: Stages that are left out, by what a wiring uses: those that remember other pages, whose answers of that time are in the
#: tables, and the browser of the crawl, whose pages are in the archive.
LEFT_OUT = frozenset({"content-seen", "url-seen", "render"})

#: Fingerprints that a run over the archive compares at the most, 330 bytes each in memory: the ledger belongs to the crawl.
FINGERPRINTS = 1_000_000


def between(wiring: Wiring) -> Wiring:
    """The stages between fetch and commit, with the archive before them and rows behind.
    Raises WiringError: there are none."""
    chain = _chain(wiring)
    if not chain:
        raise WiringError(f"{wiring.source}: no stage stands between a component that uses 'fetch' and 'commit'")
    components = {"replay": ComponentPlan(use="archive-visits", ports={"visits": "stage-0"})}
    for number, name in enumerate(chain):
        ports = {"inbox": f"stage-{number}", "outbox": f"stage-{number + 1}"}
        components[name] = msgspec.structs.replace(wiring.components[name], ports=ports, process=MAIN_PROCESS)
    components["rows"] = ComponentPlan(use="visit-rows", ports={"visits": f"stage-{len(chain)}"})
    connectors = {f"stage-{number}": ConnectorPlan(address="fused:") for number in range(len(chain) + 1)}
    connectors["stage-0"] = ConnectorPlan()
    for name in chain:
        if wiring.components[name].use == RENDER:  # its pages come out in an order of their own
            connectors[components[name].ports["outbox"]] = ConnectorPlan()
    providers: dict[str, ProviderPlan] = {}
    for name in chain:
        _take(wiring, wiring.components[name].providers, providers)
    return Wiring(providers, connectors, components, "Stages over a stored archive", wiring.source)


def _chain(wiring: Wiring) -> list[str]:
    """The stages from fetch to commit in data order, without those that are left out."""
    by_inbox = {plan.ports.get("inbox"): name for name, plan in wiring.components.items()}
    connector = next((p.ports.get("visits") for p in wiring.components.values() if p.use == "fetch"), None)
    chain: list[str] = []
    while connector is not None and (name := by_inbox.get(connector)) is not None:
        stage = wiring.components[name]
        if stage.use == "commit" or name in chain:
            break
        if stage.use not in LEFT_OUT or stage.providers.get("answers") == KEPT_ANSWERS:
            chain.append(name)
        connector = stage.ports.get("outbox")
    return chain


def _take(wiring: Wiring, roles: Mapping[str, Any], taken: dict[str, ProviderPlan]) -> None:
    for bound in roles.values():
        for names in [bound] if isinstance(bound, str) else bound.values():
            for name in [names] if isinstance(names, str) else names:
                if name in wiring.providers and name not in taken:
                    # Nothing is fetched and the ledger belongs to the crawl, so that two have stand-ins.
                    plan = wiring.providers[name]
                    if plan.use == "politeness":
                        plan = ProviderPlan(RULINGS)
                    elif plan.use == "ledger-fingerprints":
                        capacity = min(FINGERPRINTS, int(plan.settings.get("capacity", FINGERPRINTS)))
                        plan = ProviderPlan("memory-fingerprints", settings={"capacity": capacity})
                    taken[name] = plan
                    _take(wiring, plan.providers, taken)


def without_handlers(wiring: Wiring) -> Wiring:
    """The wiring of a crawl with a spider as it would be without one."""
    components = {
        name: msgspec.structs.replace(
            plan, use="process", providers={role: one for role, one in plan.providers.items() if role != "handlers"}
        )
        if plan.use == "handling-process"
        else plan
        for name, plan in wiring.components.items()
    }
    return msgspec.structs.replace(wiring, components=components)


def _processors_in(catalog: Catalog) -> Iterator[str]:
    """The names of the catalog's providers that read documents."""
    for name in catalog.names("providers"):
        with contextlib.suppress(UnknownName):  # one that needs a package which is not installed
            if hasattr(catalog.provider(name), "process"):
                yield name


def with_processors(wiring: Wiring, wanted: Sequence[str], catalog: Catalog) -> Wiring:
    """The wiring with these processors alone; all of its own where none is named.
    Raises UsageError: neither the wiring nor the catalog has a processor of this name."""
    stage = wiring.components.get("process")
    if not wanted or stage is None:
        return wiring
    bound = stage.providers.get("processors", {})
    pairs = bound.items() if not isinstance(bound, str) else ()
    table = {mime: [names] if isinstance(names, str) else names for mime, names in pairs}
    chosen: dict[str, list[str]] = {}
    providers = dict(wiring.providers)
    for text in wanted:
        mime, _, name = text.rpartition("=")
        mimes = [mime] if mime else [one for one, names in table.items() if name in names] or sorted(HTML_TYPES)
        own = {name for names in table.values() for name in names}
        use = providers[name].use if name in providers else name
        # A wiring may name a class, as `package.module:Class`; the planner judges that.
        if name not in own and ":" not in use and use not in (known := {*_processors_in(catalog)}):
            raise UsageError(f"there is no processor {name!r}{nearest(name, known | own)}")
        if name not in providers:
            providers[name] = ProviderPlan(use=name)
        for one in mimes:
            chosen.setdefault(one, []).append(name)
    settings = dict(stage.settings)
    if "isolated" in settings:
        here = {name for names in chosen.values() for name in names}
        settings["isolated"] = [name for name in settings["isolated"] if name in here]
    stage = msgspec.structs.replace(stage, providers={**stage.providers, "processors": chosen}, settings=settings)
    return msgspec.structs.replace(wiring, providers=providers, components={**wiring.components, "process": stage})
