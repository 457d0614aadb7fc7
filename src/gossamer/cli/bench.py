"""`gossamer bench`: run a benchmark by name, print its tables, keep its figures."""

import importlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import click

from gossamer.bench.peers import PROFILES
from gossamer.bench.report import BenchReport
from gossamer.engine.files import scratch
from gossamer.engine.sheet import nearest
from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.pages import path_of
from gossamer.simweb.site import Conditions

#: Benchmark -> what it measures.
BENCHES = {
    "flow": "the data-flow layer: provider calls, connectors, filters, remote links",
    "politeness": "politeness: the time that schedule and gates take for each request",
    "pace": "servers that refuse: which pace a crawl finds, and how many refusals that costs; on a simulated clock",
    "exchange": "1 to 64 agents: URLs exchanged, pages covered, fetched twice and missed, by simulation; takes minutes",
    "marshal": "masters: the time that each step takes for each URL that a master gives to an agent",
    "peers": "a crawl beside Scrapy, Crawlee and wget: same site and links in one run (needs nginx)",
    "spiders": "the Python API and handlers: their cost per page, beside the command line, Scrapy and Crawlee",
    "pages": "a whole crawl by its parts: where each microsecond of a page goes",
    "keeping": "keeping a page: what digests, archive, tables and ledger cost",
    "memory": "memory of a crawl as it goes on: pages, queue and seen set",
    "bodies": "bodies of a gigabyte, and ten thousand of a megabyte: memory, and the pace of other hosts; takes minutes",
    "hostile": "hostile servers: pace of healthy hosts beside them, and memory; takes minutes",
    "merge": "exchange files with a million URLs: the time that `gossamer merge` takes; some minutes",
    "places": "places: round trips saved by fetching hosts from near by, with rules made of measured latencies, by simulation",
    "agents": "two agents beside one and beside two crawls; hosts that move; a thousand slow hosts; five minutes",
    "sharing": "one process, agents, and crawlers that share a queue; depth 5 and 6 by each, and kinds of seen set; ten minutes",
    "dashboard": "answers with a million hosts, 1,000 units, 100 agents and crawls; what watching costs a crawl; six minutes",
    "ledger": "the durable heart: queues, seen set, commits, opening again; takes minutes",
    "structured-data": "structured data: CPU time of pages with it and without it, beside peers; the triple store",
    "questions": "SQL, reports and PageRank over a million pages and ten million links; some minutes",
    "diversity": "how evenly hosts come out of the task queues, plain and by pages",
    "mobile": "mobile crawlers: pages judged a second; bytes, requests and seconds beside a stationary crawl; some minutes",
    "tries": "the disk trie by itself, as a set and as a queue, with and without its cache",
    "focus": "focused crawling: the share of fetched pages that are relevant, beside a breadth-first crawl",
    "order": "importance: how early important pages are found by breadth, by OPIC and at best; what OPIC costs per page",
    "freshness": "freshness of pages that change, beside the optimum and other rules; simulated months; minutes",
    "revisits": "known pages: cost of a visit and of the decision when to visit again, memory and disk; minutes",
    "seen": "which URLs are new: in memory, in a trie, by a filter, in the ledger, in bulk; ten minutes at 100 million",
}

#: Other names: the frontier's queues are measured with the ledger that they lie in.
ALIASES = {"frontier": "ledger"}

#: Benchmarks that take a number of pages and nothing else.
SIZED = frozenset(
    {
        *(
            "agents",
            "bodies",
            "dashboard",
            "exchange",
            "freshness",
            "keeping",
            "memory",
            "merge",
            "pages",
            "questions",
            "revisits",
            "sharing",
        ),
        "structured-data",
    }
)

#: Benchmarks that take folders of pages.
SITED = frozenset({"mobile", "peers", "spiders"})

#: Benchmarks that draw their figures.
DRAWN = frozenset({"exchange", "mobile"})

#: Pages of the site that `peers` makes where none is named: each crawler then takes seconds.
PEER_PAGES = 2_000


@click.command()
@click.argument("name", required=False)
@click.option(
    "--site",
    "sites",
    multiple=True,
    metavar="DIR",
    help="peers, spiders: serve and crawl this folder; agents: crawl it with one agent and with two, under many names; "
    "mobile: judge its pages (repeatable).",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 20),
    default=3,
    show_default=True,
    help="Run each crawler this many times (peers, spiders, and agents with --site).",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(sorted(PROFILES)),
    help="peers: let our crawl do this much: plain (no archive, no robots.txt), archive (all that a plain "
    "command does) or everything.",
)
@click.option(
    "--pages",
    type=click.IntRange(100),
    help="Use this many pages in the crawl (agents, peers, spiders, pages, keeping, memory, questions), bodies of a "
    "megabyte (bodies), pages that are judged (mobile), pages in the store (structured-data), pages of the web "
    "(freshness, exchange), known pages (revisits) or hosts (dashboard).",
)
@click.option("--urls", type=click.IntRange(1), multiple=True, help="seen: use this many URLs (repeatable).")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME",
    help="seen: measure only memory, trie, bloom, ledger or sieve (repeatable).",
)
@click.option(
    "--chapter",
    "chapters",
    metavar="NAME",
    multiple=True,
    help="hostile: play only chapter A to G, or SLOW (repeatable).",
)
@click.option(
    "--plots",
    "plots_folder",
    metavar="FOLDER",
    help="exchange, mobile: also draw the figures, as SVG files in this folder.",
)
@click.option("--json", "json_file", metavar="FILE", help="Also write the figures as JSON.")
def bench(
    name: str | None,
    sites: tuple[str, ...],
    repeats: int,
    profiles: tuple[str, ...],
    pages: int | None,
    urls: tuple[int, ...],
    sets: tuple[str, ...],
    chapters: tuple[str, ...],
    plots_folder: str | None,
    json_file: str | None,
) -> None:
    """Run benchmark NAME and print its tables, with machine and versions. Without NAME, list the benchmarks.

    \b
    gossamer bench flow
    gossamer bench pages
    gossamer bench peers --site /usr/share/doc/python3.11/html
    gossamer bench seen --set sieve --urls 100000000
    """
    if name is None:
        for known, text in BENCHES.items():
            print(f"{known:<15} {text}")
        return
    name = ALIASES.get(name, name)
    if name not in BENCHES:
        raise click.UsageError(f"there is no benchmark {name!r}{nearest(name, BENCHES)}")
    if plots_folder is not None and name not in DRAWN:
        raise click.UsageError(f"--plots: {name} draws nothing; {' and '.join(sorted(DRAWN))} do")
    module = importlib.import_module(f"gossamer.bench.{name.replace('-', '_')}")
    if name in SITED:
        report = _of_sites(module, sites, repeats, profiles, pages)
    elif name == "agents" and sites:
        report = module.run(pages or module.PAGES, repeats, _folder(sites[0]))
    elif name in SIZED and pages is not None:
        report = module.run(pages)
    elif name == "seen":
        unknown = [one for one in sets if one not in module.SETS]
        if unknown:
            raise click.UsageError(f"there is no set {unknown[0]!r} for --set{nearest(unknown[0], module.SETS)}")
        report = module.run(urls or module.SIZES, sets)
    elif name == "order":
        report = module.run([_ranked(module, hosts, seed) for hosts, seed in ((500, 1), (50, 2))])
    elif name == "hostile":
        report = module.run([chapter.upper() for chapter in chapters])
    else:
        report = module.run()
    report.command = shlex.join(["gossamer", *sys.argv[1:]])
    print(report.text())
    _write(report, module, plots_folder, json_file)


def _write(report: BenchReport, module: ModuleType, plots_folder: str | None, json_file: str | None) -> None:
    """Write what was asked for besides the tables."""
    if plots_folder is not None:
        folder = Path(plots_folder)
        folder.mkdir(parents=True, exist_ok=True)
        for file, drawing in module.plots(report).items():
            (folder / file).write_text(drawing, encoding="utf-8")
    if json_file is not None:
        Path(json_file).write_bytes(report.json())


def _ranked(module: ModuleType, hosts: int, seed: int) -> object:
    """A simulated web whose importance is known, for the benchmark of orders."""
    from gossamer.simweb.graph import WebGraph, importance_of

    graph = WebGraph(SimWeb(WebSpec(pages=module.PAGES, hosts=hosts, seed=seed)))
    ranks = importance_of(graph)
    return module.RankedWeb(
        f"simweb, {hosts:,} hosts", lambda page: [*dict.fromkeys(graph.links_of(page))], ranks / ranks.sum()
    )


def _of_sites(
    module: ModuleType, sites: tuple[str, ...], repeats: int, profiles: Sequence[str], pages: int | None
) -> BenchReport:
    """Run a benchmark that takes folders of pages."""
    report: BenchReport
    if module.__name__.endswith(".mobile"):
        report = module.run(pages or module.PAGES, tuple(map(Path, sites)))
        return report
    more = (profiles or tuple(PROFILES),) if module.__name__.endswith(".peers") else ()
    with _sites(sites, pages or PEER_PAGES) as roots:
        report = module.run(roots, repeats, *more)
    return report


@contextmanager
def _sites(names: tuple[str, ...], pages: int) -> Iterator[list[Path]]:
    """The folders to crawl; where none is named, one host of a simulated web as files."""
    if names:
        yield [_folder(name) for name in names]
        return
    with scratch("gossamer-bench-") as folder:
        # nginx reads as another user where it was started by root.
        Path(folder).chmod(0o755)
        root = Path(folder, "simulated")
        write_site(root, pages)
        yield [root]


def write_site(root: Path, pages: int) -> None:
    """Write the largest host of a simulated web as files, for servers that serve files. What redirects or is gone is left
    out, and its links to other hosts lead nowhere."""
    web = SimWeb(WebSpec(pages=pages, hosts=1, redirect_share=0, gone_share=0, flaky_share=0, trap_share=0))
    host = web.hosts.host(0)
    door = web.door(host.name)
    assert door is not None
    for index in range(host.size):
        path = path_of(index)
        file = root / (path[1:] or "index.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(web.answer(door, path, Conditions(), web.spec.epoch).body)


def _folder(name: str) -> Path:
    path = Path(name)
    if not (path / "index.html").is_file():
        raise click.UsageError(f"--site {name}: not a folder with an index.html to crawl from")
    return path.resolve()
