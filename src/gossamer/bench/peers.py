"""Gossamer beside its peers: the same site, the same links followed, one run; CPU of the crawler alone.

The site is served by nginx (on its own processor where there are two), because a server of ours would share the crawler's
habits. Peers of Python live in environments of their own, made by pip on the first run; wget is measured where it is
installed. CPU a page is compared: wall time on a shared machine says more about the neighbours.
"""

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import click
import msgspec

from gossamer.bench.harness import (
    AT_ONCE,
    BenchedCrawl,
    BenchReport,
    by_turns,
    measured,
    nginx,
    pages_option,
    repeats_option,
    site_option,
)
from gossamer.engine import processes
from gossamer.engine.files import scratch
from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.page import path_of
from gossamer.simweb.site import Conditions
from gossamer.values.errors import UsageError

#: Where peers' environments are kept between runs.
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gossamer" / "peers"

#: Live requests to the one host, for every crawler.
PER_HOST = 16


#: The work of our crawl for a page -> its options. All obey no delay: the server is ours.
PROFILES = {"plain": ("--no-warc", "--robots", "ignore"), "archive": (), "everything": ("--analysis", "full")}

#: Tags whose links are followed, by every crawler.
TAGS = "a,area,iframe,frame"


#: Crawler of :mod:`gossamer.bench.other_crawlers` -> what pip installs for it, and the name of its environment.
OTHERS = {
    "scrapy": ("scrapy", "scrapy"),
    "parsel": ("crawlee[parsel]", "crawlee"),
    "soup": ("crawlee[parsel,beautifulsoup]", "crawlee-items"),
}

#: From a seed and a folder that is the run's own to the run.
Crawler = Callable[[str, Path], BenchedCrawl]


def gossamer(seed: str, folder: Path, profile: str) -> BenchedCrawl:
    """Our crawl, doing for each page what the profile says."""
    command = processes.command("gossamer", "crawl", seed, "--per-host", str(PER_HOST), "--json", "--quiet")
    command += [*AT_ONCE, *PROFILES[profile], "-o", str(folder / "crawl")]
    return measured(command, folder, processes.environment())


def other(
    seed: str, folder: Path, name: str, takes: str = "digest", job: Mapping[str, Any] | None = None
) -> BenchedCrawl:
    """Scrapy or Crawlee, following the same links; it archives nothing.

    Args:
        seed: the site.
        folder: of the run.
        name: of :data:`OTHERS`.
        takes: what it makes of a page: its digest, or an item.
        job: what else :mod:`gossamer.bench.other_crawlers` is told.
    """
    package, own = OTHERS[name]
    asked = {"crawler": name, "seeds": [seed], "scope": seed, "takes": takes, "pages": 0, "today": False}
    asked |= {"per_host": PER_HOST, "live": PER_HOST, **(job or {})}
    script = str(Path(__file__).with_name("other_crawlers.py"))
    return measured([str(environment(own, package)), script, msgspec.json.encode(asked).decode()], folder)


def wget(seed: str, folder: Path) -> BenchedCrawl:
    """wget, following the same links one after the other, and keeping the pages as files."""
    command = ["wget", "-q", "-r", "-l", "inf", "-e", "robots=off", f"--follow-tags={TAGS}", "--no-parent", seed]
    return kept_by_wget(measured(command, folder), folder)


def kept_by_wget(run: BenchedCrawl, folder: Path) -> BenchedCrawl:
    """The run, with the pages that wget wrote."""
    kept = [path for path in folder.rglob("*") if path.is_file()]
    pages = sum(path.suffix in (".html", ".htm") for path in kept)
    return msgspec.structs.replace(run, pages=pages, bytes=sum(path.stat().st_size for path in kept))


def environment(name: str, *packages: str) -> Path:
    """The Python of a peer's own environment, made on the first call."""
    own = CACHE / name / "bin" / "python"
    stamp = CACHE / name / "ready"
    if not stamp.exists():
        print(f"setting up {name} in an environment of its own (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-I", "-m", "venv", "--clear", str(CACHE / name)], check=True)
        command = [str(own), "-I", "-m", "pip", "install", "-q", *packages]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise UsageError(f"pip could not install {' '.join(packages)}: {done.stderr.strip().splitlines()[-1]}")
        stamp.touch()
    return own


def versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of the peers, for the record."""
    found = {}
    for name in {"scrapy", "crawlee"} & set(names):
        asked = f"from importlib.metadata import version; print(version({name!r}))"
        done = subprocess.run(
            [str(CACHE / name / "bin" / "python"), "-I", "-c", asked], check=False, capture_output=True, text=True
        )
        found[name] = done.stdout.strip()
    if "wget" in names:
        done = subprocess.run(["wget", "--version"], check=False, capture_output=True, text=True)
        found["wget"] = done.stdout.partition(" built")[0].rpartition(" ")[2]
    return found


def in_turn(chosen: Mapping[str, Crawler], seed: str, folder: Path, repeats: int) -> dict[str, list[BenchedCrawl]]:
    """Run every crawler in turn, so many times, each in a folder of its own.

    Raises:
        UsageError: one of them failed, or found nothing.
    """
    # An installed package has its bytecode; a checkout whose files have just changed would pay for it in every run.
    compileall.compile_dir(str(Path(__file__).parents[1]), quiet=1)
    numbers = count()

    def one(name: str, crawler: Crawler) -> BenchedCrawl:
        own = folder / f"run-{next(numbers)}"
        own.mkdir()
        run = crawler(seed, own)
        if not run.pages:
            raise UsageError(f"{name} found no page at {seed}; nothing can be compared")
        shutil.rmtree(own)
        return run

    return by_turns({name: partial(one, name, crawler) for name, crawler in chosen.items()}, repeats)


def times(base: Iterable[BenchedCrawl], those: Iterable[BenchedCrawl]) -> float:
    """How many times the CPU of the second runs a page of the first ones takes, as the median of pairs of one round."""
    return statistics.median(one.cpu_each / other.cpu_each for one, other in zip(base, those, strict=True))


@site_option
@repeats_option
@pages_option(2_000, "Make a site of this many pages, where none is named.")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(sorted(PROFILES)),
    help="Let our crawl do this much: plain (no archive, no robots.txt), archive (all that a plain command does) or everything.",
)
def run(sites: Sequence[Path] = (), repeats: int = 3, pages: int = 2_000, profiles: Sequence[str] = ()) -> BenchReport:
    """Crawl the same site with Gossamer, Scrapy, Crawlee and wget in turn, following the same links, and compare CPU a page.

    nginx serves it.
    """
    report = BenchReport("peers")
    chosen: dict[str, Crawler] = {
        f"gossamer {name}": partial(gossamer, profile=name) for name in profiles or tuple(PROFILES)
    }
    chosen |= {"scrapy": partial(other, name="scrapy"), "crawlee": partial(other, name="parsel")}
    if shutil.which("wget"):
        chosen["wget"] = wget
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name, folders(sites, pages) as roots:
        for root in roots:
            with nginx(root) as port:
                runs = in_turn(chosen, f"http://127.0.0.1:{port}/", Path(name), repeats)
            compare(report, f"{root.name}, {PER_HOST} live requests (wget: one), medians of {repeats}", runs)
    report.machine |= versions(chosen)
    return report


def compare(
    report: BenchReport, title: str, runs: Mapping[str, Sequence[BenchedCrawl]], price: float | None = None
) -> None:
    """A table of crawlers, beside Scrapy where it ran, with what a billion pages cost if the price of a vCPU hour is told."""
    dollars = () if price is None else (f"$ a billion pages at {price:g} $ a vCPU hour",)
    table = report.table(
        title,
        *("crawler", "pages", "MB", "ms CPU a page", "pages a CPU second", "pages/s", "peak MB", "times scrapy"),
        *dollars,
    )
    for name, done in runs.items():
        cost = statistics.median(one.cpu_each for one in done)
        table.add(
            *(name, done[0].pages, f"{done[0].bytes / 1e6:.1f}", f"{cost:.2f}", f"{1000 / cost:.0f}"),
            f"{statistics.median(one.pace for one in done):.0f}",
            f"{max(one.peak for one in done) / 1e6:.0f}",
            f"{times(runs['scrapy'], done):.1f}" if "scrapy" in runs else "",
            *(() if price is None else (f"{cost * 1e6 / 3600 * price:,.0f}",)),
        )


@contextmanager
def folders(sites: Sequence[Path], pages: int) -> Iterator[Sequence[Path]]:
    """The folders to crawl; where none is named, one host of a simulated web as files."""
    for site in sites:
        if not (site / "index.html").is_file():
            raise UsageError(f"--site {site}: not a folder with an index.html to crawl from")
    if sites:
        yield sites
        return
    with scratch("gossamer-bench-") as folder:
        # nginx reads as another user where it was started by root.
        Path(folder).chmod(0o755)
        root = Path(folder, "simulated")
        write_site(root, pages)
        yield [root]


def write_site(root: Path, pages: int) -> None:
    """Write the largest host of a simulated web as files, for servers that serve files. A page that redirects or is gone is left
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
