"""A standing in words: the one text of `status` and `watch`, of the live panel, and of the lines of a crawl without a terminal.

Place in the flow: :mod:`gossamer.crawls.control.standing` makes the value; here each part of it becomes a few words, and
callers choose among them by the room that they have.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len, chop_cells

from gossamer.cli.saying import as_called
from gossamer.engine.sheet import show_bytes, show_count, show_seconds
from gossamer.values.outcome import ERRORS

if TYPE_CHECKING:
    from gossamer.crawls.control.problems import Problem
    from gossamer.crawls.control.standing import (
        AgentStanding,
        CrawlStanding,
        ExchangeStanding,
        MasterStanding,
        StoredAgent,
    )
    from gossamer.crawls.control.waits import DataSet, Wait

#: Reasons of delays that `--delay` takes away.
_SHORTENED = ("setting", "latency")

#: Characters of a name in a list: a URL may have thousands.
NAME = 60

#: Seconds from which on it is worth a word that an agent does not acknowledge what a master has sent.
LATE = 1.0

#: Bytes a second from which on growth is worth a word.
GROWS = 1.0


def shown_agent(one: "AgentStanding") -> str:
    at_work = f", {one.recent_pages_per_second:.1f} pages/s, {one.in_flight:,} in flight" if one.process else ""
    silent = f" for {show_seconds(one.silent_seconds)}" if one.silent_seconds else ""
    again = f", started again {show_count(one.restarts, 'time')}" if one.restarts else ""
    name = f"{one.name} on {one.node}" if one.node else one.name
    if not one.process and silent:
        return f"{name}: {one.state}{silent}{again}"
    return f"{name}: {one.state}, {one.pages:,} pages, {one.queued:,} queued{at_work}{again}"


def shown_master(one: "MasterStanding") -> str:
    if not one.process:
        return f"{one.name}: {one.state}"
    late = f", an agent is {show_seconds(one.lag)} late" if one.lag >= LATE else ""
    return f"{one.name}: {one.state}, {one.marshaled:,} URLs marshaled, {one.waiting:,} waiting{late}"


def shown_wait(wait: "Wait", now: float, directory: str) -> str:
    """One reason why something waits, and until when; `now` is in seconds since the epoch."""
    names = ", ".join(shortened(name, NAME) for name in wait.names)
    hosts, named = show_count(wait.hosts, "host"), f" ({names})" if names else ""
    soon = f" in {show_seconds(max(0.0, wait.until - now))}" if wait.until else ""
    urls = show_count(wait.urls, "URL") if not wait.is_more else f"more than {show_count(wait.urls, 'URL')}"
    texts = {
        "paused": f"paused until `gossamer continue {shlex.quote(directory)}`",
        "disk_full": "the disk is full; make room: the crawl goes on by itself",
        "memory": "nearly as much memory is in use as `--memory` allows, so one page is asked for at a time",
        "network_down": f"our own network seems down; next probe{soon}",
        "retries": f"retries of {urls} of {hosts}, next{soon}{named}",
        "unreachable": f"{hosts} unreachable, next try{soon}{named}",
        "dns_failed": f"{hosts} without an address, next look-up{soon}{named}",
        "refusals": f"{hosts} asked for a pause, over{soon}{named}",
        "robots_unreachable": f"robots.txt of {hosts} out of reach, next try{soon}{named}",
        "delay": _shown_delay(wait, urls, soon),
        "look_ups": f"{show_count(wait.hosts, 'name')} being looked up",
        "slow_pages": f"{show_count(wait.urls, 'slow page')} in flight for up to {show_seconds(wait.seconds)}{named}",
        "crawlers": f"{urls} lent to mobile crawlers, {wait.hosts} on their way",
        "set_aside": f"{urls} set aside as parts of traps (gossamer traps {shlex.quote(directory)})",
    }
    return texts.get(wait.why, wait.why)


def _shown_delay(wait: "Wait", urls: str, soon: str) -> str:
    """The usual pause between two requests to a host, and how an owner shortens it."""
    wait_for = "waits" if wait.urls == 1 else "wait"
    if wait.hosts > 1:
        by = f" (by {wait.reason})" if wait.reason == "store" else ""
        return f"{urls} {wait_for} for the delays of {show_count(wait.hosts, 'host')}{by}, next request{soon}"
    own = (
        "; `--delay 0` if it is yours"
        if wait.reason in _SHORTENED
        else f", by {'robots.txt' if wait.reason == 'robots' else wait.reason}"
    )
    names = ", ".join(shortened(name, NAME) for name in wait.names)
    return f"{urls} {wait_for} for the delay of {names} ({show_seconds(wait.seconds)}{own})"


def shown_exchange(now: "ExchangeStanding") -> str:
    """The debts of an agent to others by files, and what these have brought it."""
    files = ", ".join(f"{one.urls:,} in {show_count(one.files, 'file')} for {one.agent}" for one in now.unconfirmed)
    return (
        f"{now.agent} of {now.agents}, {show_count(now.owed, 'URL')} owed, {now.written:,} written and not confirmed"
        + (f" ({files})" if files else "")
        + f"; {show_count(now.merged, 'file')} merged with {show_count(now.received, 'URL')}"
    )


def shown_problem(problem: "Problem") -> str:
    """A problem: reason, evidence, and the command that helps."""
    return f"{problem.reason} ({problem.evidence})" + (f": {problem.command}" if problem.command else "")


def shown_speed(now: "CrawlStanding") -> str:
    """Speed over the last seconds, and the mean."""
    return f"{now.recent_pages_per_second:.1f} pages/s, mean {now.pages_per_second:.1f}"


def shown_left(now: "CrawlStanding") -> str:
    """Time left until a limit, or an estimate; empty where nothing can be said."""
    if now.time_left:
        return f"{now.time_left} left"
    return f"about {show_seconds(now.estimate)} left" if now.estimate and now.queued else ""


def shown_outcomes(now: "CrawlStanding") -> str:
    """Outcomes by number, but for the errors; the most frequent first."""
    return ranked({name: count for name, count in now.outcomes.items() if name not in ERRORS})


def shown_errors(now: "CrawlStanding") -> str:
    """Errors by kind; empty where there are none."""
    return ranked({name: count for name, count in now.outcomes.items() if name in ERRORS})


def shown_failing(now: "CrawlStanding", most: int = 3) -> str:
    return ", ".join(f"{one.host} {one.errors:,}" for one in now.failing[:most])


def ranked(counts: dict[str, int], digits: str = ",") -> str:
    """Counts with their names, the greatest first; `digits` is how they are written."""
    return ", ".join(f"{count:{digits}} {name}" for name, count in sorted(counts.items(), key=lambda pair: -pair[1]))


def shown_size(one: "DataSet") -> str:
    items = f" ({show_count(one.items, 'URL')})" if one.items else ""
    sign = "-" if one.growth < 0 else "+"
    grows = f" {sign}{show_bytes(abs(one.growth))}/s" if abs(one.growth) >= GROWS else ""
    return f"{one.name} {show_bytes(one.bytes)}{items}{grows}"


def shown_hint(directory: str) -> str:
    """Where to ask for more."""
    quoted = shlex.quote(directory)
    return as_called(f"gossamer status {quoted}; gossamer why {quoted} URL")


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: max(0, most - 3)]}..."[:most]


# A standing as rows: a title, and what it says. Of a list, rows after the first have no title.

Rows = Iterator[tuple[str, str]]

#: How limits are written.
_LIMITS: dict[str, Callable[[float], str]] = {
    "max_time": show_seconds,
    "max_bytes": show_bytes,
    "min_free_disk": show_bytes,
}


def rows_of(now: "CrawlStanding", at: float, *, problems: int = 0, most: int | None = None, digits: str = "") -> Rows:
    """The rows of `status` and of `watch`.

    Args:
        at: seconds since the epoch.
        problems: so many of them are told, the worst.
        most: rows of a list; None for all.
        digits: how whole numbers are written.
    """
    yield from _listed("store", list(map(_stored, now.stored)), most)
    yield from _progress(now, most, lambda count: format(count, digits))
    if now.outcomes:
        yield "outcomes", ranked(now.outcomes, digits)
    errors, failing = shown_errors(now), shown_failing(now, most or 5)
    yield (
        "errors",
        f"{now.errors:{digits}}" + (f": {errors}" if errors else "") + (f" (most at {failing})" if failing else ""),
    )
    yield from _listed("waits", [shown_wait(wait, at, now.crawl) for wait in now.waits], most)
    yield from _listed("problems", list(map(shown_problem, now.problems[:problems])))
    if now.limits:
        left = shown_left(now)
        shown = [f"{name} {_LIMITS.get(name, '{:g}'.format)(value)}" for name, value in now.limits.items()]
        yield "limits", ", ".join(shown) + (f" ({left})" if left else "")
    yield from _hosts(now, most or 5)
    if now.sizes:
        yield "sizes", ", ".join(map(shown_size, now.sizes))
    if now.checkpoints:
        yield "kept", f"{', '.join(now.checkpoints)} (checkpoints)"
    if now.cpu_seconds:
        yield "used", f"{now.cpu_seconds:.1f} s of CPU, {show_bytes(now.peak_rss_bytes)} of memory"


def _stored(one: "StoredAgent") -> str:
    heard = f"owned by {one.holder}, heard of {show_seconds(one.heard)} ago" if one.holder else "owned by no process"
    published = "no checkpoint" if one.published is None else f"checkpoint {show_seconds(one.published)} old"
    lacking = f", without the last {show_bytes(one.uncovered)}" if one.uncovered else ""
    away = f"the store cannot be reached{', and no host is asked until it can' if one.rests else ''}"
    if one.is_away and not one.owner:
        return f"{one.name}: {away}"
    return f"{one.name}: {published}{lacking}; {heard} (owner {one.owner}){f'; {away}' if one.is_away else ''}"


def _progress(now: "CrawlStanding", most: int | None, written: Callable[[int], str]) -> Rows:
    pages = f"{written(now.pages)} ({written(now.fetched)} fetched, {written(now.unique_documents)} unique"
    yield "pages", f"{pages}, {show_bytes(now.bytes)})"
    speed = shown_speed(now) if now.is_at_work else f"{now.pages_per_second:.1f} pages/s"
    yield "speed", f"{speed} in {show_seconds(now.seconds)}"
    left = shown_left(now) if not now.limits else ""
    yield (
        "queue",
        f"{written(now.queued)} of {written(now.discovered)} discovered"
        + (f", {written(now.in_flight)} in flight" if now.is_at_work else "")
        + (f", {now.new_links / now.links:.0%} of {now.links:,} links new" if now.links else "")
        + (f", {left}" if left else ""),
    )
    yield "hosts", written(now.hosts)
    if now.exchange is not None:
        yield "exchange", shown_exchange(now.exchange)
    is_told = now.is_at_work and (now.agents > 1 or now.alone)
    number = [f"{now.agents}" + (f": {now.alone}" if now.alone else "")] if is_told else []
    yield from _listed("agents", [*number, *map(shown_agent, now.each_agent)], most)
    yield from _listed("masters", list(map(shown_master, now.each_master)), most)
    if now.judged:
        yield "harvest", f"{now.relevant / now.judged:.0%} ({now.relevant} of {now.judged} pages relevant)"


def _hosts(now: "CrawlStanding", most: int) -> Rows:
    if now.slowest:
        yield "slowest", ", ".join(f"{one.host} {one.seconds * 1000:.0f} ms" for one in now.slowest[:most])
    if now.slowed:
        slowed = (f"{one.host} {show_seconds(one.delay)} ({one.reason})" for one in now.slowed[:most])
        yield "slowed", ", ".join(slowed)
    if now.sessions is not None:
        worst = ", ".join(f"{one.name} {one.retired} times" for one in now.sessions.members[:3] if one.retired)
        shown_worst = f" ({worst})" if worst else ""
        retired = f"{now.sessions.retired} of at most {now.sessions.most} retired"
        yield "sessions", f"{now.sessions.count}, {retired}{shown_worst}"
    if now.proxies:
        resting = [one for one in now.proxies if one.rests]
        shown = ", ".join(
            f"{one.proxy} {one.failed} of {one.asked} failed, rests {show_seconds(one.rests)}" for one in resting[:3]
        )
        yield "proxies", f"{len(now.proxies)}, {len(resting)} resting" + (f": {shown}" if shown else "")
    if now.blocked:
        yield "blocked", ", ".join(now.blocked)


def _listed(title: str, texts: Sequence[str], most: int | None = None) -> Rows:
    yield from zip_longest((title,)[: len(texts)], texts[:most], fillvalue="")
    if most is not None and len(texts) > most:
        yield "", f"and {len(texts) - most} more"


# A few lines that stay at the bottom of a terminal, and are drawn again in their place. :mod:`gossamer.cli.progress` draws; what
# is told meanwhile (:mod:`gossamer.cli.saying`) comes above. Most terminals break the lines that stand there anew when they
# become narrower. So before each redraw the rows are counted that the lines take at the present width: nothing is left behind
# after a resize.

#: Columns and rows where a terminal does not say how large it is.
USUAL = (80, 24)

#: A piece of a line: a text, or the same in several lengths, the longest first. An empty one is none.
Piece = str | Sequence[str]

#: Spaces between two pieces of a line.
GAP = "  "


def size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and rows of the terminal behind a stream."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return USUAL
    return size.columns or USUAL[0], size.lines or USUAL[1]


class Panel:
    def __init__(self, write: Callable[[str], object], size: Callable[[], tuple[int, int]]) -> None:
        """Nothing is drawn yet. `write` writes to the terminal, at once; `size` gives its columns and rows as they are now."""
        self._write = write
        self._size = size
        self._lines: list[str] = []

    @property
    def width(self) -> int:
        return max(1, self._size()[0] - 1)

    def draw(self, lines: Sequence[str]) -> None:
        self._write(self._instead("", lines))

    def clear(self) -> None:
        self._write(self._instead("", ()))

    def above(self, text: str) -> str:
        """The bytes that put a text above the lines."""
        return self._instead(f"{text}\n", self._lines)

    def _instead(self, text: str, lines: Sequence[str]) -> str:
        columns, rows = self._size()
        taken = sum(max(1, -(-cell_len(line) // max(1, columns))) for line in self._lines)
        up = f"\x1b[{taken - 1}A" if taken > 1 else ""
        erased = f"\r{up}\x1b[J" if self._lines else ""
        # Lines that have left the screen at its top cannot be drawn over.
        self._lines = [cut(line, max(1, columns - 1)) for line in lines][: max(1, rows - 1)]
        return erased + text + "\n".join(self._lines)


def cut(line: str, width: int) -> str:
    """A line that takes at most so many columns."""
    if cell_len(line) <= width:
        return line
    if width <= 3:
        return "." * width
    return chop_cells(line, width - 3)[0] + "..."


def fitted(pieces: Sequence[Piece], width: int) -> str:
    """As many of these pieces as one line has room for, in their order; the weightiest stands first, and is cut if it must be."""
    line = ""
    for piece in filter(None, pieces):
        lengths = [piece] if isinstance(piece, str) else piece
        longer = (f"{line}{GAP}{text}" if line else text for text in lengths if text)
        line = next((text for text in longer if cell_len(text) <= width), line or cut(lengths[-1], width))
    return line
