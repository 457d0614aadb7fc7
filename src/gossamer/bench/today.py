"""Pages as they are today, beside the peers: heavy pages under many hosts, over TLS with a handshake for each page, in gzip.

Place in the flow: :mod:`gossamer.bench.todays_web` serves the pages on the last processor; the crawlers run on the first
one, in turn, with as many requests in flight, and each stops after so many pages. All obey robots.txt. The peers check no
certificate, ours does. wget has no limit of pages, so it stops after as many bytes as these pages have; it has no queue on
disk, and asks one host after the other.

One more crawl of ours is measured from inside: CPU by stage, with start and tables told apart.
"""

import shutil
import ssl
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from gossamer.bench.harness import AT_ONCE, BenchedCrawl, BenchReport, measured, serving
from gossamer.bench.pages import account, profiled
from gossamer.bench.peers import OTHERS as PROGRAMS
from gossamer.bench.peers import PROFILES, TAGS, Crawler, compare, environment, in_turn, kept_by_wget, other, versions
from gossamer.bench.todays_web import WebOfToday
from gossamer.engine import processes
from gossamer.values.errors import UsageError

#: Pages that each crawler fetches: enough that start and end are a small part.
PAGES = 5_000

#: Hosts, and requests in flight for one of them and in all.
HOSTS, PER_HOST, LIVE = 50, 1, 32

#: Dollars for an hour of a virtual processor: what a crawl of a billion pages paid in 2025 (c5d instances of Amazon, on demand).
PRICE = 0.0944

#: Options of our crawls.
OURS = (*AT_ONCE, "--allow-network", "127.0.0.0/8", "--contact", "bench@example.org")


class ServedToday(msgspec.Struct, frozen=True):
    """The web that is served."""

    origins: list[str]
    templates: int
    median: int
    """Bytes of a template."""
    mean: int


@contextmanager
def served(web: WebOfToday) -> Iterator[ServedToday]:
    """Serve it. Raises UsageError if it did not start."""
    call = msgspec.json.encode([web]).decode()
    with serving(processes.command("gossamer.bench.harness", "gossamer.bench.todays_web:serve", call)) as (said, _):
        yield msgspec.json.decode(said, type=ServedToday)


def gossamer(_: str, folder: Path, profile: str, seeds: Sequence[str], pages: int, trusted: str) -> BenchedCrawl:
    """Our crawl, from all front pages."""
    listed = folder / "seeds.txt"
    listed.write_text("".join(f"{origin}/\n" for origin in seeds))
    command = processes.command("gossamer", "crawl", "--seeds", str(listed), "--json", "--quiet")
    command += ["--ca-file", trusted] if trusted else []
    command += [*OURS, "--per-host", str(PER_HOST), "--concurrency", str(LIVE), "--max-pages", str(pages)]
    return measured([*command, *PROFILES[profile], "-o", str(folder / "crawl")], folder, processes.environment())


def counted(seed: str, folder: Path, crawler: Crawler, trusted: str) -> BenchedCrawl:
    """The run of a crawler, with the bytes of the bodies that the server made for it; crawlers count them each in its own way."""
    _served_bytes(seed, trusted)
    run = crawler(seed, folder)
    return msgspec.structs.replace(run, bytes=_served_bytes(seed, trusted))


def _served_bytes(seed: str, trusted: str) -> int:
    context = ssl.create_default_context(cafile=trusted) if trusted else None
    with urllib.request.urlopen(f"{seed}-/served", context=context) as answer:  # noqa: S310  # our own server
        told: dict[str, int] = msgspec.json.decode(answer.read())
    return told.get("bytes", 0)


def wget(_: str, folder: Path, seeds: Sequence[str], size: int) -> BenchedCrawl:
    """wget, from the front pages one after the other, until it has so many bytes; it keeps the pages as files."""
    command = ["wget", "-q", "-r", "-l", "inf", f"--follow-tags={TAGS}", "--no-check-certificate", f"--quota={size}"]
    command += ["--compression=gzip", *(f"{origin}/" for origin in seeds)]
    return kept_by_wget(measured(command, folder), folder)


@click.option(
    "--pages",
    "folder",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Make the pages out of the HTML files of this folder (.html, .html.gz) instead of made ones.",
)
@click.option(
    "--count", type=click.IntRange(100), default=PAGES, show_default=True, help="Fetch this many pages with each."
)
@click.option("--hosts", type=click.IntRange(1, 5_000), default=HOSTS, show_default=True, help="Serve this many hosts.")
@click.option(
    "--tls",
    type=click.Choice(["full", "resumed", "none"]),
    default="full",
    show_default=True,
    help="full: a handshake for each page; resumed: a session can be resumed; none: plain HTTP, connections stay open.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(sorted(PROFILES)),
    default=("archive", "everything"),
    show_default=True,
    help="Let our crawl do this much (repeatable).",
)
@click.option("--peers/--no-peers", default=True, show_default=True, help="Also measure Scrapy, Crawlee and wget.")
@click.option(
    "--repeats", type=click.IntRange(1, 20), default=1, show_default=True, help="Run each crawler this many times."
)
@click.option(
    "--price", type=float, default=PRICE, show_default=True, help="Dollars for an hour of a virtual processor."
)
def run(
    folder: Path | None = None,
    count: int = PAGES,
    hosts: int = HOSTS,
    tls: str = "full",
    profiles: Sequence[str] = ("archive",),
    *,
    peers: bool = True,
    repeats: int = 1,
    price: float = PRICE,
) -> BenchReport:
    """Crawl pages as they are today with Gossamer, Scrapy, Crawlee and wget, and say what a billion of them would cost.

    The pages are made to the shape that the HTTP Archive publishes, unless --pages names a folder; each URL has a body of its own.
    Peers of Python are set up in environments of their own on the first run; one that cannot be is left out.
    """
    report = BenchReport("today")
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name:
        trusted = str(Path(name, "ca.pem"))
        with served(WebOfToday(hosts, tls, trusted, str(folder or ""))) as web:
            trusted = trusted if tls != "none" else ""
            ours = partial(gossamer, seeds=web.origins, pages=count, trusted=trusted)
            chosen: dict[str, Crawler] = {f"gossamer {profile}": partial(ours, profile=profile) for profile in profiles}
            if peers:
                chosen |= _others(web, count)
            chosen = {name: partial(counted, crawler=one, trusted=trusted) for name, one in chosen.items()}
            runs = in_turn(chosen, web.origins[0] + "/", Path(name), repeats)
            title = (
                f"{web.templates} {'pages of ' + folder.name if folder else 'made pages'}, {web.median / 1e3:.0f} KB in the median "
                f"and {web.mean / 1e3:.0f} in the mean, on {hosts} hosts; TLS: {tls}; {LIVE} live requests (wget: one), "
                f"{'one run' if repeats == 1 else f'medians of {repeats}'}"
            )
            compare(report, title, runs, price)
            options: dict[str, Any] = {
                "scope": "host",
                "per_host": PER_HOST,
                "concurrency": LIVE,
                "max_pages": count,
                **({"ca_file": trusted} if trusted else {}),
            }
            seeds = [f"{origin}/" for origin in web.origins]
            account(report, profiled(Path(name, "profile"), seeds, **options), hosts)
    report.machine |= versions(chosen)
    return report


def _others(web: ServedToday, count: int) -> Mapping[str, Crawler]:
    """The peers that are here, or can be set up."""
    job = {"seeds": [f"{origin}/" for origin in web.origins], "scope": "", "pages": count, "today": True}
    job |= {"per_host": PER_HOST, "live": LIVE}
    found: dict[str, Crawler] = {}
    for name, program in (("scrapy", "scrapy"), ("crawlee", "parsel")):
        package, own = PROGRAMS[program]
        try:
            environment(own, package)
        except UsageError as error:
            click.echo(f"{name} is left out: {error}", err=True)
            continue
        found[name] = partial(other, name=program, job=job)
    if shutil.which("wget"):
        # It counts bytes as they come on the line; it starts in no time, so that a fifth of the pages says as much.
        found["wget"] = partial(wget, seeds=web.origins, size=count // 5 * web.mean // 5)
    return found
