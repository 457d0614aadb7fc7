"""The plan of a crawl: its options compiled, its graph planned, its seeds read, everything checked that options and wiring say.

Place in the flow: :mod:`crawl` makes one before it touches anything, and asks it again whenever the running graph is to change.
"""

import datetime
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.additions import with_subscribers, without_subscribers
from gossamer.crawls.builder import hostless, with_directory, with_durability, with_told_tls
from gossamer.crawls.catalog import catalog as shipped_catalog
from gossamer.crawls.crawlers import compile_with_crawlers
from gossamer.crawls.directory import kept_wiring
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.processes import check_bodies_cross, check_children_can_import, with_pre_filters
from gossamer.crawls.seeds import check_schemes, default_directory, free_name, read_seeds, users_of
from gossamer.engine.errors import SettingError
from gossamer.engine.graph import Graph
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.wiring import Wiring
from gossamer.expressions.predicates import compile_pattern
from gossamer.frontier.frontier import SeedsSheet
from gossamer.storage.tables.log import TableLogSheet
from gossamer.storage.tables.places import TRIPLES
from gossamer.values.errors import UsageError


class CrawlPlan:
    """A crawl as its options and its wiring say it: where, from which seeds, by which graph."""

    def __init__(
        self,
        seeds: Sequence[str],
        options: CrawlOptions,
        wiring: Wiring | None,
        settings: Mapping[str, Mapping[str, Any]],
        catalog: Catalog | None,
        subscribers: Sequence[str],
    ) -> None:
        """Compile and check; touches nothing. Raises UsageError: there is nothing to crawl, or the options do not fit;
        FlowError: the graph cannot be."""
        if users := users_of(seeds):
            options = msgspec.structs.replace(options, auth=(*users, *options.auth))
        self._options = options
        if options.resume:
            wiring = wiring or kept_wiring(options.output)
        self._hostless = hostless(wiring)
        given = read_seeds(seeds, self._hostless)
        # A pattern that is none is refused before anything is said of the directory.
        for name in ("include", "exclude"):
            for pattern in getattr(options, name):
                try:
                    compile_pattern(pattern)
                except ValueError as error:
                    raise SettingError(f"{name}: {error}") from None
        compiled = compile_with_crawlers(given, options, wiring, settings)
        stores = (node.settings.get("directory") for node in compiled.providers.values())
        named = options.output or next((str(text) for text in stores if text), "")
        path = Path(named)
        if not named:
            urls = [url for node in compiled.components.values() for url in node.settings.get("urls", ())]
            path = Path(default_directory(urls, datetime.datetime.now().astimezone().date()))
        self.has_found_name = not (named or options.overwrite)
        """No person named its directory: it is the first free one."""
        self.directory = free_name(path) if self.has_found_name else path
        if options.release:
            from gossamer.crawls.trap_review import with_released

            if not options.resume:
                raise UsageError(
                    "--release fetches what an earlier run has set aside; give it to `gossamer resume DIR`"
                )
            compiled = with_released(compiled, self.directory, options.release)
        self.catalog = catalog or shipped_catalog()
        compiled = with_pre_filters(with_directory(compiled, str(self.directory)))
        self._subscribers = tuple(subscribers)
        self.graph = self.planned(with_subscribers(with_told_tls(with_durability(compiled)), self._subscribers))
        """The graph of all processes, as it begins."""
        sheets = (node.sheet for node in self.graph.components.values() if isinstance(node.sheet, SeedsSheet))
        # Seeds may be many, so none is read twice.
        found = [given if sheet.urls == given else read_seeds(sheet.urls, self._hostless) for sheet in sheets]
        self.seeds = found[0] if len(found) == 1 else tuple(itertools.chain.from_iterable(found))
        """Canonical URLs, each once."""
        if not self.seeds:
            raise UsageError("there is nothing to crawl: give a seed URL, or --seeds FILE with one on each line")
        check_schemes(self.seeds, self.graph)

    def planned(self, wiring: Wiring) -> Graph:
        """The graph of a wiring of this crawl. Raises FlowError: it cannot be."""
        graph = plan(wiring, self.catalog)
        check_bodies_cross(graph)
        check_children_can_import(graph, self.catalog)
        return graph

    def kept(self, graph: Graph) -> Wiring:
        return without_subscribers(graph.wiring, self._subscribers)

    @property
    def keeps_triples(self) -> bool:
        sheets = (node.sheet for node in self.graph.providers.values())
        return any(isinstance(sheet, TableLogSheet) and TRIPLES in sheet.tables for sheet in sheets)
