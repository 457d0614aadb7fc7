"""`gossamer status DIR`: how a crawl stands, asked of it while it runs, read from its ledger while it rests."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gossamer.assembly.control.client import Control, NotRunning
from gossamer.assembly.control.messages import Status
from gossamer.cli.saying import empty_terminal, say_json, say_lines
from gossamer.flow.quantities import show_bytes, show_seconds

if TYPE_CHECKING:
    from gossamer.assembly.control.standing import CrawlStanding

#: What limits are shown in.
_SHOWN_IN = {"max_time": show_seconds, "max_bytes": show_bytes, "min_free_disk": show_bytes}

#: Problems that are told: the worst. `--json` has all of them.
PROBLEMS = 2


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--units",
    is_flag=True,
    help="Also show the counters of every unit, and the number of items that passed each connector.",
)
@click.option("--watch", is_flag=True, help="Repeat until the crawl ends.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 60),
    default=2.0,
    show_default=True,
    help="Wait this many seconds between two looks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each look.")
def status(directory: str, units: bool, watch: bool, interval: float, as_json: bool) -> None:
    """Show how a crawl stands: pages, queue, hosts, speed, outcomes, errors, why it waits and until when, limits,
    sizes.

    This works while the crawl runs, and after. A crawl that runs is running, paused or stopping. One that ended is
    finished, limit (it reached one), stopped, incomplete, or killed (its process died). `gossamer resume` goes
    on with any crawl that is not finished.
    """
    path = Path(directory)
    try:
        with Control(path) as control:
            while True:
                now = _ask(control, units)
                _print(now, as_json=as_json, screen=watch and not as_json and sys.stdout.isatty())
                if not watch:
                    return
                time.sleep(interval)
    except NotRunning:
        from gossamer.assembly.control.at_rest import standing_at_rest
        from gossamer.assembly.kept import read_wiring

        _print(standing_at_rest(path), as_json=as_json, screen=False)
        read_wiring(path)  # the figures need no wiring, but a crawl whose wiring is damaged does not go on


def _ask(control: Control, units: bool) -> "CrawlStanding":
    from gossamer.assembly.control.standing import CrawlStanding

    found: CrawlStanding = control.told(Status(units), CrawlStanding)
    return found


def _print(now: "CrawlStanding", *, as_json: bool, screen: bool) -> None:
    if screen:
        empty_terminal()
    say_json(now) if as_json else say_lines(lines_of(now, time.time()))


def lines_of(now: "CrawlStanding", at: float) -> list[str]:
    """A standing, for people; `at` is in seconds since the epoch."""
    from gossamer.cli import showing

    left, errors, failing = showing.shown_left(now), showing.shown_errors(now), showing.shown_failing(now, most=5)
    lines = [
        f"{now.crawl}: {now.state}" + (f", process {now.process}" if now.is_at_work else ""),
        f"pages:    {now.pages} ({now.fetched} fetched, {now.unique_documents} unique, {show_bytes(now.bytes)})",
        f"speed:    {_speed(now)} in {show_seconds(now.seconds)}",
        f"queue:    {now.queued} of {now.discovered} discovered"
        + (f", {now.in_flight} in flight" if now.is_at_work else "")
        + showing.shown_links(now)
        + (f", {left}" if left and not now.limits else ""),
        f"hosts:    {now.hosts}",
    ]
    if now.exchange is not None:
        lines.append(f"exchange: {showing.shown_exchange(now.exchange)}")
    is_told = now.is_at_work and (now.agents > 1 or now.alone)
    number = [f"{now.agents}" + (f": {now.alone}" if now.alone else "")] if is_told else []
    lines += _hanging("agents:   ", [*number, *map(showing.shown_agent, now.each_agent)])
    lines += _hanging("masters:  ", list(map(showing.shown_master, now.each_master)))
    if now.judged:
        lines.append(f"harvest:  {now.relevant / now.judged:.0%} ({now.relevant} of {now.judged} pages relevant)")
    if now.outcomes:
        ranked = sorted(now.outcomes.items(), key=lambda pair: -pair[1])
        lines.append("outcomes: " + ", ".join(f"{count} {name}" for name, count in ranked))
    lines.append(
        f"errors:   {now.errors}" + (f": {errors}" if errors else "") + (f" (most at {failing})" if failing else "")
    )
    lines += _hanging("waits:    ", [showing.shown_wait(wait, at, now.crawl) for wait in now.waits])
    lines += _hanging("problems: ", [showing.shown_problem(one) for one in now.problems[:PROBLEMS]])
    if now.limits:
        shown = [f"{name} {_SHOWN_IN.get(name, '{:g}'.format)(value)}" for name, value in now.limits.items()]
        lines.append("limits:   " + ", ".join(shown) + (f" ({left})" if left else ""))
    return [*lines, *_hosts(now), *_stores(now), *_figures(now)]


def _speed(now: "CrawlStanding") -> str:
    from gossamer.cli.showing import shown_speed

    return shown_speed(now) if now.is_at_work else f"{now.pages_per_second:.1f} pages/s"


def _hanging(title: str, texts: list[str]) -> list[str]:
    """One text a line beside a title."""
    return [f"{title if index == 0 else ' ' * len(title)}{text}" for index, text in enumerate(texts)]


def _hosts(now: "CrawlStanding") -> Iterator[str]:
    if now.slowest:
        yield "slowest:  " + ", ".join(f"{one.host} {one.seconds * 1000:.0f} ms" for one in now.slowest[:5])
    if now.slowed:
        shown = [f"{one.host} {show_seconds(one.delay)} ({one.reason})" for one in now.slowed[:5]]
        yield "slowed:   " + ", ".join(shown)
    if now.sessions is not None:
        worst = [f"{one.name} {one.retired} times" for one in now.sessions.members[:3] if one.retired]
        shown_worst = f" ({', '.join(worst)})" if worst else ""
        yield f"sessions: {now.sessions.count}, {now.sessions.retired} of at most {now.sessions.most} retired{shown_worst}"
    if now.proxies:
        resting = [one for one in now.proxies if one.rests]
        shown = [
            f"{one.proxy} {one.failed} of {one.asked} failed, rests {show_seconds(one.rests)}" for one in resting[:3]
        ]
        yield f"proxies:  {len(now.proxies)}, {len(resting)} resting" + (f": {', '.join(shown)}" if shown else "")
    if now.blocked:
        yield f"blocked:  {', '.join(now.blocked)}"


def _stores(now: "CrawlStanding") -> Iterator[str]:
    from gossamer.cli.showing import shown_size

    if now.sizes:
        yield "sizes:    " + ", ".join(map(shown_size, now.sizes))
    if now.checkpoints:
        yield f"kept:     {', '.join(now.checkpoints)} (checkpoints)"
    if now.cpu_seconds:
        yield f"used:     {now.cpu_seconds:.1f} s of CPU, {show_bytes(now.peak_rss_bytes)} of memory"


def _figures(now: "CrawlStanding") -> Iterator[str]:
    for unit in now.units:
        figures = ", ".join(f"{name} {value:g}" for name, value in unit.metrics.items())
        yield f"  {unit.name} ({unit.use}): {figures or 'nothing'}"
    for one in now.connectors:
        yield (
            f"  {one.name}: {one.passed} passed, {one.waiting} waiting, peak {one.peak}, stalled {one.stalled:.2f} s"
        )
