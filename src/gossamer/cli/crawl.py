"""`gossamer crawl`: options to a crawl, progress while it runs, one line or one report at the end.

Options are read before the crawler is imported, so a person who asks for help or mistypes waits for a third of the time.
"""

import contextlib
import functools
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from gossamer.cli.helping import option
from gossamer.cli.options import (
    OptionsInGroups,
    crawl_options,
    read_given,
    read_seed_files,
    read_sets,
    resume_options,
)
from gossamer.cli.saying import Leaving, say_json, say_lines, tell, unwritten
from gossamer.crawls.machine import allow_open_files, coroutine_runner, tune_collector
from gossamer.engine.sheet import option_name, show_bytes, show_count, show_seconds
from gossamer.engine.subjects import found_at, subjects

if TYPE_CHECKING:
    from gossamer.agents.crawl import SupervisedCrawl
    from gossamer.crawls.options import CrawlOptions
    from gossamer.crawls.summary import Summary
    from gossamer.engine.wiring import Wiring

F = TypeVar("F", bound=Callable[..., Any])


EPILOG = (
    "Exit status: 0 finished or a limit reached, 2 wrong usage, 3 stopped, 4 incomplete or without tables, "
    "5 directory in use or damaged."
)


class Telling(NamedTuple):
    """How a crawl is told of, and what it ends with."""

    as_json: bool
    quiet: bool
    verbose: bool
    fail_on: str
    """The failures that make a crawl end with exit status 4; tables that could not be made always do."""


def told(command: F) -> F:
    """The options of :class:`Telling`."""

    @functools.wraps(command)
    def called(*, as_json: bool, quiet: bool, verbose: bool, fail_on: str, **more: Any) -> Any:
        return command(telling=Telling(as_json, quiet, verbose, fail_on), **more)

    for add in (
        option(
            "-v --verbose",
            "Print a line for each URL when it is committed, and at the end the number of items that passed each connector.",
        ),
        option("-q --quiet", "Show no progress."),
        option(
            "--fail-on",
            "End with 4 if anything failed that a later try could fetch (any), only if no seed brought a document "
            "(seeds), or never for failed fetches (none). [default: any]",
            type=click.Choice(("none", "seeds", "any")),
            default="any",
        ),
        option("--json as_json", "Print only one line of JSON, at the end."),
    ):
        called = add(called)
    return cast("F", called)


def in_browser(command: F) -> F:
    return option(
        "--dashboard [ADDRESS]",
        "Show the crawl in the browser, at the address that is printed; ADDRESS is [HOST:]PORT, by default a "
        "free port of 127.0.0.1. The dashboard ends with the crawl.",
        is_flag=False,
        flag_value="",
    )(command)


def configured(command: F) -> F:
    """Options that come from elsewhere, or that only units know."""
    command = option("--set sets UNIT.SETTING=VALUE...", "Set any setting of any unit (repeatable).")(command)
    return option("--config FILE", "Read options from a TOML file; the command line overrides it.")(command)


def begun(command: F) -> F:
    """The options by which a crawl begins, each of a file."""
    command = configured(
        option("--wiring wiring_name FILE", "Use this wiring; see gossamer topology --format toml.")(command)
    )
    seeds = option("--seeds seed_files FILE...", "Read seeds from a file, one a line; - is standard input.")
    return crawl_options(seeds(command))


@click.command(cls=OptionsInGroups, epilog=EPILOG)
@click.argument("seed", nargs=-1)
@begun
@in_browser
@told
def crawl(
    seed: tuple[str, ...],
    seed_files: tuple[str, ...],
    config: str | None,
    sets: tuple[str, ...],
    wiring_name: str | None,
    dashboard: str | None,
    telling: Telling,
    **given: Any,
) -> int:
    """Crawl from one or more SEED URLs.

    The crawl keeps its pages (as WARC) and its logs in a directory, ./crawl-HOST-DATE unless -o names another. Ctrl-C
    stops gracefully, after the requests in flight have ended. A second Ctrl-C stops at once.

    \b
    gossamer crawl http://localhost:8000/
    gossamer crawl http://localhost:8000/docs/ --scope prefix --depth 3 --max-time 10m -o mine
    """
    options, more = read_given(given, config)
    if (status := _followed(options, seed_files)) is not None:
        return status
    from gossamer.cli.progress import parted

    address, behind = parted(dashboard)
    with Leaving() as leaving:
        from gossamer.crawls.builder import hostless
        from gossamer.crawls.compiling import find_wiring
        from gossamer.crawls.plan import with_schemes

        wiring = find_wiring(wiring_name) if wiring_name else None
        seeds = [*behind, *seed, *more, *read_seed_files(seed_files, hostless(wiring))]
        seeds = with_schemes(seeds, options, wiring, _say)
        job = _job(seeds, options, wiring, read_sets(sets))
        return run_job(job, leaving, telling, address)


@click.command(cls=OptionsInGroups, epilog=EPILOG)
@click.argument("directory", metavar="DIR")
@option("-o --output DIR", "Where DIR is a store: an empty folder for the crawl.")
@resume_options
@configured
@in_browser
@told
def resume(
    directory: str,
    output: str | None,
    config: str | None,
    sets: tuple[str, ...],
    dashboard: str | None,
    telling: Telling,
    **given: Any,
) -> int:
    """Go on with the crawl in DIR after a stop, a limit or a kill.

    It goes on with its configuration, changed by the options that are given here. It asks again for URLs that were in
    flight when it ended, and for nothing that it has kept. This does the same as `gossamer crawl --resume -o DIR`. A crawl
    that is only paused goes on with `gossamer continue DIR`. DIR may be the store of a crawl (`--store`): it then goes on
    in the folder that -o names, once its old owner has been silent for --lease, or with --take-over.

    \b
    gossamer resume mycrawl
    gossamer resume s3://bucket/mycrawl -o mycrawl
    gossamer resume mycrawl --max-pages 100000 --set politeness.delay=5s
    """
    given |= {"output": directory, "resume": True}
    options, more = read_given(given, config)
    if more:
        raise click.UsageError(f"{config}: a resumed crawl has its seeds already; leave out `seeds`")
    if (status := _followed(options)) is not None:
        return status
    from gossamer.cli.progress import parted

    address, behind = parted(dashboard)
    if behind:
        raise click.UsageError(f"--dashboard {behind[0]}: write [HOST:]PORT, as 127.0.0.1:8080")
    with Leaving() as leaving:
        if not Path(directory, "crawl.toml").exists():
            from gossamer.backup.elsewhere import bring_back, is_store

            if is_store(directory) or (output is not None and "://" in directory):
                options, output = bring_back(directory, output or "", options), None
        if output is not None:
            raise click.UsageError(
                f"-o says where a crawl of a store goes on, and {directory} is no store; leave it out"
            )
        return run_job(_job([], options, None, read_sets(sets)), leaving, telling, address)


def _followed(options: "CrawlOptions", seed_files: Sequence[str] = ()) -> int | None:
    """The exit status of this command, where its cluster runs it on one of its own machines; None: it is at work here."""
    places = [one.far_commands[options.cluster] for one in subjects() if options.cluster in one.far_commands]
    if not places:
        return None
    given = sys.stdin.buffer.read() if "-" in seed_files else b""
    status: int | None = found_at(places[0])(sys.argv[1:], given=given)
    return status


def _job(
    seeds: Sequence[str], options: "CrawlOptions", wiring: "Wiring | None", settings: Mapping[str, Mapping[str, Any]]
) -> "SupervisedCrawl":
    from gossamer.agents.crawl import SupervisedCrawl

    return SupervisedCrawl(seeds, options, wiring=wiring, settings=settings, report=_say)


def run_job(job: "SupervisedCrawl", leaving: Leaving, telling: Telling, dashboard: str | None = None) -> int:
    """Run a crawl and report how it went; returns its exit status. `dashboard` is where to show it; None: nowhere."""

    if telling.verbose:
        from gossamer.cli.progress import url_teller
        from gossamer.storage.logs import LOG_PATH

        if not job.tell_each(url_teller(job)):  # several agents keep their records to themselves
            log = job.directory / LOG_PATH
            _say(f"--verbose prints no line for each URL when several agents crawl; read these lines in {log}")
    tune_collector()
    allow_open_files()
    with coroutine_runner() as runner:
        shown = not (telling.quiet or telling.as_json)
        summary = runner.run(run_interruptible(job, leaving, show=shown, fail_on=telling.fail_on, dashboard=dashboard))
    status = summary.status(telling.fail_on)
    try:
        if telling.as_json:
            say_json(summary)
        else:
            _print_report(job, summary, telling)
    except OSError as error:
        return unwritten(error, status)
    return status


def _say(line: str) -> None:
    tell(line)


async def run_interruptible(
    job: "SupervisedCrawl", leaving: Leaving, *, show: bool, fail_on: str = "any", dashboard: str | None = None
) -> "Summary":
    """Run with progress, if it is to be shown, and signals handled: the first asks, the second insists.

    A crawl stops before it says so: nothing depends on whether a person reads that.
    """
    import asyncio

    from gossamer.cli.progress import dashboard_beside, progress_display

    loop = asyncio.get_running_loop()
    asked = 0

    def interrupted() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            job.stop()
            tell("stopping: the requests in flight are finished first; ask once more to stop at once")
        else:
            job.abort()

    for number in leaving.handled:
        loop.add_signal_handler(number, interrupted)
    try:
        async with dashboard_beside(job, dashboard), progress_display(job) if show else contextlib.nullcontext():
            summary = await job.run()
            leaving.status = summary.status(fail_on)
            return summary
    finally:
        for number in leaving.handled:
            loop.remove_signal_handler(number)
        leaving.take()


def _print_undone(job: "SupervisedCrawl", summary: "Summary", fail_on: str) -> None:
    """The work that was not done, why, and the command that would do it; then the warnings once more."""
    from gossamer.crawls.summary import has_brought

    lines: list[str] = []
    lost = summary.outcomes.get("gone_after_retries", 0)
    if lost:
        lines.append(
            f"lost:     {show_count(lost, 'URL')} failed in every try; "
            f"gossamer report {shlex.quote(summary.crawl)} errors lists them"
        )
    is_kept = Path(summary.crawl).exists()
    if summary.goal:
        lines.append(f"until:    {summary.goal}")
    if summary.queued and is_kept:
        if summary.state == "incomplete" and summary.waiting and not summary.limit:
            lines.append(f"queued:   {show_count(summary.queued, 'URL')} failed so far, and can be tried again")
        else:
            why = f" ({option_name(summary.limit)} was reached)" if summary.limit else ""
            lines.append(f"queued:   {show_count(summary.queued, 'URL')} still to be fetched{why}")
        more = f" {option_name(summary.limit)} MORE" if summary.limit and not summary.goal else ""
        lines.append(f"go on:    gossamer resume {shlex.quote(summary.crawl)}{more}")
    if summary.set_aside and is_kept:
        lines.append(
            f"aside:    {show_count(summary.set_aside, 'URL')} of likely traps; "
            f"gossamer resume {shlex.quote(summary.crawl)} --release all"
        )
    lines += [f"warning:  {line}" for line in dict.fromkeys(job.warnings)]
    if summary.state == "incomplete" and fail_on == "any" and has_brought(summary) and not summary.failure:
        lines.append(
            "status:   4, since a later try could fetch more; with --fail-on seeds it is 0 once documents came"
        )
    if lines:
        say_lines(lines)


def _by_rule(cuts: Mapping[str, int]) -> str:
    shown = {name: option_name(name.removeprefix("limit:")) if name.startswith("limit:") else name for name in cuts}
    return ", ".join(f"{count} by {shown[name]}" for name, count in cuts.items())


def _print_report(job: "SupervisedCrawl", summary: "Summary", telling: Telling) -> None:
    from gossamer.cli.showing import ranked
    from gossamer.values.visit import CUTS_OF_PAGES

    pages = show_count(summary.pages, "page")
    if not summary.pages:
        documents = summary.unique_documents
        nothing = "no document came" if summary.fetched else "nothing was fetched"
        pages = f"no page, {show_count(documents, 'other document')}" if documents else f"{nothing}: 0 pages"
    print(f"{summary.state}: {pages}, {summary.fetched:,} fetched, {show_bytes(summary.bytes)}", end=" ")
    print(f"in {show_seconds(summary.seconds)} ({summary.pages_per_second:.1f} pages/s)", end="")
    print(f" into {summary.crawl}" if Path(summary.crawl).exists() else "")
    if summary.outcomes:
        print(f"outcomes: {ranked(summary.outcomes, '')}")
    if job.troubled:
        print(
            f"trouble:  {show_count(job.troubled, 'page')} could not be processed in full; `trouble` in the log says why"
        )
    if summary.raised:
        visits = show_count(summary.raised, "visit")
        print(f"errors:   your code raised exceptions on {visits}; the table `errors` says where")
    if summary.needs_browser:
        shells = f"{summary.needs_browser:,} of {summary.pages:,} pages"
        print(f"browser:  {shells} seem to need a browser: they hold scripts, few words and hardly a link")
    # URLs that a stop leaves queued are told below, and are not lost.
    cuts = {name: count for name, count in summary.cuts.items() if name not in ("stopped", "refused")}
    if in_order := {name: count for name, count in cuts.items() if name not in CUTS_OF_PAGES}:
        print(f"cut:      {_by_rule(in_order)}; another order of the pages would leave out other URLs")
    if of_pages := {name: count for name, count in cuts.items() if name in CUTS_OF_PAGES}:
        print(f"cut:      {_by_rule(of_pages)}; `rejected` in the log says of which pages")
    if refused := summary.cuts.get("refused"):
        print(
            f"refused:  {show_count(refused, 'URL')} of other agents, since no crawl can keep them; see docs/exchange.md"
        )
    _print_undone(job, summary, telling.fail_on)
    if telling.verbose:
        for name, figures in job.connector_statistics.items():
            print(f"  {name:<12} {figures.passed:>9} passed, peak {figures.peak}, stalled {figures.stalled:.2f} s")
