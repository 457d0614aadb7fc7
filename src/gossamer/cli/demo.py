"""`gossamer demo`: a web of our own, crawled for half a minute, and what its server says of the crawl.

The crawl is an ordinary one (`agents.crawl.SupervisedCrawl`, with the options that a person would type); the web comes from
`gossamer.simweb`, in a process of its own on a free loopback port, and its auditor reads the server's log afterwards.
Nothing leaves this machine.
"""

import contextlib
import importlib
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gossamer.bench import BENCHES
from gossamer.cli.helping import Seconds, option
from gossamer.cli.saying import Leaving, say_json, say_lines
from gossamer.crawls.machine import coroutine_runner
from gossamer.engine.sheet import build, nearest, show_bytes, show_seconds
from gossamer.engine.subjects import found_at
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.crawls.summary import Summary
    from gossamer.simweb import WebSpec
    from gossamer.simweb.audit import Audit

#: More than half a minute's crawl on a fast machine; the auditor still knows its expected pages at once.
PAGES, HOSTS = 40_000, 400

#: Median seconds before a host answers: as on a good day on the web, and it gives the panel slow hosts to show.
LATENCY = 0.02

#: A question to the tables, for a start.
SQL = "SELECT outcome, count(*) FROM pages GROUP BY outcome"

#: The server's log, kept beside what the crawl leaves.
LOG_NAME = "requests.log"


@click.command()
@option("--seconds", "Crawl for this many seconds.", type=Seconds(0.5, 86_400), default=30.0, show_default=True)
@option("-o --output DIR", "Keep the crawl in this directory.  [default: ./demo-crawl]", default="")
@option("--json as_json", "Print only one line of JSON, at the end.")
def demo(seconds: float, output: str, as_json: bool) -> None:
    """Crawl a simulated web and report the results.

    This starts a web of 40,000 pages on this machine, crawls it with the code and the options of `gossamer crawl`, then
    lets the web's own auditor judge what the crawl found, missed and did wrong. Ctrl-C ends it sooner.

    \b
    gossamer demo
    gossamer demo --seconds 5 -o /tmp/demo --json
    """
    import msgspec

    from gossamer.crawls.directory import NameTaken
    from gossamer.crawls.plan import free_name
    from gossamer.engine.files import scratch
    from gossamer.simweb import ServeOptions, WebSpec, beside
    from gossamer.simweb.audit import AuditOptions, audit

    spec = WebSpec(pages=PAGES, hosts=HOSTS, latency=LATENCY)
    directory = Path(output) if output else free_name(Path("demo-crawl"))
    with scratch("gossamer-demo-") as folder:
        log = Path(folder) / LOG_NAME
        with contextlib.ExitStack() as stack:
            try:
                port = stack.enter_context(beside(spec, ServeOptions(log=log)))
            except OSError as error:
                raise UsageError(f"the demo cannot start here: {error}") from error
            while True:
                try:
                    summary = _crawl(spec, port, directory, seconds, show=not as_json)
                    break
                except NameTaken:
                    if output:
                        raise
                    directory = free_name(Path("demo-crawl"))
        if not summary.fetched:
            raise UsageError("the demo ended before anything was crawled; there is nothing to report")
        verdict = audit(log, AuditOptions(scope="any"))
        log = Path(shutil.copy(log, directory / LOG_NAME))
    if as_json:
        say_json({**msgspec.structs.asdict(summary), "audit": verdict})
    else:
        say_lines(report(spec, summary, verdict))


def _crawl(spec: "WebSpec", port: int, directory: Path, seconds: float, *, show: bool) -> "Summary":
    from gossamer.agents.crawl import SupervisedCrawl
    from gossamer.cli.crawl import run_interruptible
    from gossamer.crawls.options import all_options
    from gossamer.simweb import SimWeb

    options = {
        "output": str(directory),
        "scope": "any",
        "max_time": seconds,
        "delay": 0,
        "resolve": (f"*.sim=127.0.0.1:{port}",),
        "allow_network": ("127.0.0.0/8",),
    }
    hosts = SimWeb(spec).hosts
    job = SupervisedCrawl([f"http://{hosts.name(0)}/"], build(all_options(), options))
    if show:
        click.echo(f"Crawling {hosts.pages:,} simulated pages on {len(hosts):,} hosts for {show_seconds(seconds)}.")
    with coroutine_runner() as runner, Leaving() as leaving:
        return runner.run(run_interruptible(job, leaving, show=show))


def report(spec: "WebSpec", summary: "Summary", verdict: "Audit") -> Iterator[str]:
    """The lines of the report: what was done, what the web's server says of it, where things are, what to try next."""
    from gossamer.cli.showing import ranked
    from gossamer.simweb import SimWeb

    cost = summary.cpu_seconds / summary.pages * 1000 if summary.pages else 0.0
    yield ""
    yield f"Pages        {summary.pages:,} in {show_seconds(summary.seconds)}: {summary.pages_per_second:,.0f} a second"
    yield f"Cost         {cost:.1f} ms of processor time a page, {show_bytes(summary.peak_rss_bytes)} of memory at most"
    yield f"Fetched      {summary.fetched:,} answers, {show_bytes(summary.bytes)}, from {summary.hosts:,} hosts"
    yield f"Outcomes     {ranked(summary.outcomes)}"
    yield f"Waiting      {summary.queued:,} URLs were found and not fetched yet"
    yield ""
    yield "Audit of the crawl, from the log of the web's server"
    coverage, robots = verdict.coverage, verdict.robots
    yield (
        f"Coverage     {coverage.found:,} so far of the {coverage.expected:,} pages that a whole crawl has to find; "
        f"{coverage.extra:,} fetched that it should not"
    )
    yield f"Repeats      {verdict.repeats.pages:,} pages fetched more than once"
    yield (
        f"Politeness   live requests at most: {verdict.host.most_in_flight} at a host, "
        f"{verdict.domain.most_in_flight} at a domain, {verdict.address.most_in_flight} at an address"
    )
    yield (
        f"Order        {verdict.order.crawl_area:.2f} of the best possible; "
        f"breadth-first would have had {verdict.order.breadth_first_area:.2f}"
    )
    yield (
        f"Robots       {robots.breaches:,} breaches of robots.txt, {robots.asked_late:,} hosts asked for it late, "
        f"{robots.delay_breaches:,} requests inside a Crawl-delay"
    )
    yield ""
    home = f"http://{SimWeb(spec).hosts.name(0)}/"
    yield f"Archive      {summary.crawl}/warc, its index {summary.crawl}/index.cdxj"
    yield f"Tables       {summary.crawl}/tables"
    yield f"Log          {summary.crawl}/logs, one line for each URL"
    yield f"Server's log {summary.crawl}/{LOG_NAME}"
    yield ""
    yield "Try next"
    yield f"  gossamer status {summary.crawl}    # how the crawl stands"
    yield f"  gossamer why {summary.crawl} {home}    # the story of one URL"
    yield f'  gossamer query {summary.crawl} "{SQL}"    # SQL over the tables'
    yield f"  gossamer cat {summary.crawl} {home}    # a page from the archive"
    yield f"  gossamer simweb --audit {summary.crawl}/{LOG_NAME} --plot order.svg    # everything the auditor found"
    yield f"  gossamer topology {summary.crawl}/crawl.toml    # the parts that this crawl was made of"
    yield f"  gossamer simweb --pages {spec.pages} --hosts {spec.hosts}    # the same web, for any crawler; it says how"
    yield ""
    yield "A site of your own: gossamer crawl https://example.org/ --contact you@example.org"


# `gossamer bench NAME`: run a benchmark, print its tables, keep its figures.

#: Where a checkout has the benchmarks of developers.
_OF_CHECKOUT = Path(__file__).parents[3] / "tools" / "bench" / "__init__.py"


def benches() -> dict[str, tuple[str, str]]:
    """Every benchmark that is here, by its name: its place, and what it measures."""
    more = importlib.import_module("tools.bench").BENCHES if _OF_CHECKOUT.is_file() else {}
    return {**BENCHES, **more}


class _Benchmarks(click.Group):
    """Knows benchmarks by name, loads one only when it is called."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = benches()
        if cmd_name not in known:
            more = "" if _OF_CHECKOUT.is_file() else "; a checkout of the source has more"
            raise click.UsageError(f"there is no benchmark {cmd_name!r}{nearest(cmd_name, known)}{more}")
        run = found_at(known[cmd_name][0])

        def printed(json_file: str | None, **options: Any) -> None:
            # A benchmark that is ended takes its servers and crawls with it.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            report = run(**options)
            report.command = shlex.join(["gossamer", *sys.argv[1:]])
            print(report.text())
            if json_file is not None:
                Path(json_file).write_bytes(report.json())

        own = list(reversed(getattr(run, "__click_params__", ())))
        kept = click.Option(["--json", "json_file"], metavar="FILE", help="Also write the figures as JSON.")
        return click.Command(cmd_name, callback=printed, params=[*own, kept], help=run.__doc__)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those of every installation, without loading any."""
        with formatter.section("Benchmarks of every installation (a checkout has more: `gossamer bench` lists them)"):
            formatter.write_dl([(name, text) for name, (_, text) in BENCHES.items()])


@click.group(cls=_Benchmarks, invoke_without_command=True, subcommand_metavar="[NAME] [OPTIONS]")
@click.pass_context
def bench(ctx: click.Context) -> None:
    """Run benchmark NAME and print its tables, with machine and versions. Without NAME, list the benchmarks; `bench NAME --help`
    shows the options of one.

    \b
    gossamer bench today
    gossamer bench pages
    gossamer bench peers --site /usr/share/doc/python3.11/html
    """
    if ctx.invoked_subcommand is None:
        for known, (_, text) in benches().items():
            print(f"{known:<15} {text}")
