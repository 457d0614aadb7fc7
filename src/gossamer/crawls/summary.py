"""The result of a crawl: the value that `--json` prints, `status` shows and the Python API returns, and the lines of its report.

Place in the flow: :mod:`figures` fills the value. When the work is over, :mod:`crawl` reports which seeds brought nothing, which
URLs wait and why, and the command that goes on; the command line prints the sums after them.
"""

import contextlib
import itertools
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import msgspec

from gossamer.engine.sheet import option_name, show_count
from gossamer.frontier.contract import JUDGED, RELEVANT
from gossamer.frontier.limits import RetriesWaiting
from gossamer.storage.logs import LOG_PATH
from gossamer.values.outcome import TRAITS, Outcome
from gossamer.values.patterns import lazy_pattern
from gossamer.values.url import site_of
from gossamer.values.visit import CUTS_OF_PAGES

#: Under this name the ledger keeps the summary of the run that ended last; empty while one is at work.
ENDED = "ended"


#: Why a host waits for longer than its delay (:class:`~gossamer.frontier.politeness.places.HeldBy`), in words.
HELD = {
    "dns_failed": "its name has no address",
    "unreachable": "it does not answer",
    "refusals": "it asked for a pause",
    "robots_unreachable": "its robots.txt is out of reach",
}

#: Where the supervisor of several agents keeps that of the crawl as a whole, inside its directory.
ENDED_FILE = "state/ended.json"


class CrawlSums(msgspec.Struct, frozen=True):
    """The figures that the summary of a run and the standing of a crawl have alike."""

    crawl: str
    state: str
    """Of a crawl that has ended: `finished`, `limit`, `stopped` or `incomplete`."""
    pages: int = 0
    fetched: int = 0
    unique_documents: int = 0
    bytes: int = 0
    outcomes: dict[str, int] = {}
    discovered: int = 0
    queued: int = 0
    hosts: int = 0
    seconds: float = 0.0
    """Of this run, or of the last one."""
    pages_per_second: float = 0.0
    """The mean of this run, or of the last one."""
    cpu_seconds: float = 0.0
    peak_rss_bytes: int = 0
    set_aside: int = 0
    """URLs that look like parts of traps: they wait behind everything else."""
    cuts: dict[str, int] = {}
    """Number of URLs that each limit left out: see :func:`cuts_of`."""
    limit: str = ""
    """The name of the option whose limit ended the run; empty if no limit did."""
    goal: str = ""
    """The URL at which `--until` ended the run; empty if it did not."""
    waiting: RetriesWaiting | None = None
    """Retries that are due after the end of the run."""
    raised: int = 0
    """Visits on which processors or handlers raised an exception. The table `errors` has the details."""
    needs_browser: int = 0
    """Pages that seem to need a browser: they hold scripts, few words and hardly a link."""
    judged: int = 0
    """Pages whose relevance a focused crawl has judged."""
    relevant: int = 0
    """Judged pages that were relevant: `relevant / judged` is the harvest rate."""
    failure: str = ""
    """Why tables and index, or the mirror, could not be made; empty where they were, and while a run is at work."""


class Summary(CrawlSums, frozen=True):
    """The result of a crawl. Its fields are those of the line that `--json` prints at the end."""

    def with_failure(self, why: str) -> "Summary":
        """The same, where tables or the mirror could not be made for this reason; a later run has to. Empty: they were made."""
        return msgspec.structs.replace(self, failure=why, state=with_failure(self.state, why))

    def status(self, fail_on: str) -> int:
        """The exit status where a person chose what counts as a failure: `none`, `seeds` or `any`."""
        passes = fail_on == "none" or (fail_on == "seeds" and has_brought(self))
        return 0 if passes and self.state == "incomplete" and not self.failure else self.exit_code

    @property
    def exit_code(self) -> int:
        """The exit status of the crawl: 0 finished or limit, 3 stopped, 4 incomplete, or without tables or mirror."""
        return 4 if self.failure else {"finished": 0, "limit": 0, "stopped": 3, "incomplete": 4}[self.state]


def with_failure(state: str, why: str) -> str:
    """The state of a crawl that ended in `state`, whose tables could not be made for a reason; empty: they were."""
    return "incomplete" if why and state in ("finished", "limit") else state


def counted(counters: Mapping[str, int]) -> dict[str, Any]:
    """The fields that a summary and a standing have alike, by the counters of one ledger.

    Each agent counts the documents that are new to it; the agent that has a document's digest counts its copies at other agents. So
    the difference is exact over all agents, and can be negative for one of them.
    """
    alike = ("pages", "fetched", "bytes", "discovered", "hosts", "raised", "needs_browser")
    return {
        **{name: counters.get(name, 0) for name in alike},
        "unique_documents": counters.get("documents", 0) - counters.get("copies", 0),
        "outcomes": {name.partition(":")[2]: n for name, n in counters.items() if name.startswith("outcome:")},
        "judged": counters.get(JUDGED, 0),
        "relevant": counters.get(RELEVANT, 0),
    }


def urls_elsewhere(counters: Mapping[str, int]) -> int:
    """How many URLs wait outside of the queues, by the counters of a ledger: to be sent to other agents, where claims of documents
    are none, or with mobile crawlers."""
    return counters.get("owed", 0) - counters.get("owed_claims", 0) + counters.get("lent", 0)


#: Counters of the ledger that count cuts: budgets of hosts and domains, near-duplicates that were dropped, URLs of other
#: agents that the outbox had no room for, URLs that other agents sent and that cannot be kept, sitemaps, and parts of pages.
_CUTS = (
    *("cut:budget:", "cut:near-duplicate", "cut:owed", "cut:lent", "cut:crawler:", "cut:refused", "cut:sitemaps"),
    *(f"cut:{rule}" for rule in CUTS_OF_PAGES),
)


def cuts_of(counters: Mapping[str, int], ended_by: str, queued: int, set_aside: int) -> dict[str, int]:
    """Limits that bit: by rule, how many URLs each left out.

    All but those of a page's links, another run of the same crawl might have made elsewhere (row R6). Scope, filters and depth
    are no such limits: they lead to the same pages in whatever order they come.

    Args:
        ended_by: what ended the run before its queues were empty, as `limit:max_pages`; empty if nothing did.
        queued: URLs that were still queued then.
        set_aside: URLs that look like parts of traps, of which some were fetched as probes.
    """
    cuts = {name.removeprefix("cut:"): n for name, n in counters.items() if n and name.startswith(_CUTS)}
    if set_aside:
        cuts["set_aside"] = set_aside
    if ended_by and queued:
        cuts[ended_by] = queued
    return dict(sorted(cuts.items()))


def cpu_seconds() -> float:
    """Seconds of CPU of this process and of those that it started and that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 3)


def peak_rss() -> int:
    """Bytes. Linux counts in KiB, macOS in bytes; children by the largest one, which is what the system keeps."""
    unit = 1 if sys.platform == "darwin" else 1024
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(peaks) * unit


# The report of a crawl at its end.

#: Seeds that get a line each.
TOLD_SEEDS = 20

#: Rows of the log that are searched for the seeds: they are fetched first.
LOOKED_AT = 10_000

#: Outcomes that bring a document, or say that the one we have is still the one, or that there is one that is not wanted.
_BROUGHT = (Outcome.OK, Outcome.NOT_MODIFIED, Outcome.TRUNCATED, Outcome.IRRELEVANT)

#: Outcomes that a later try may mend, or that no try has mended.
_FAILED = frozenset(one for one in Outcome if TRAITS[one].is_transient) | {Outcome.GONE_AFTER_RETRIES}

#: URLs that failed and are named.
TOLD_URLS = 3

#: Rules by which the user's own options keep a URL out: each is the name of its option, with what decided after a colon.
_OPTIONS = frozenset({"only", "never", "filter"})

_LINE = lazy_pattern(r"line (\d+)\)$")


def has_documents(counters: Mapping[str, int]) -> bool:
    """Whether any document came: all of them come from seeds, directly or not, so without one no seed brought any."""
    return any(counters.get(f"outcome:{outcome}") for outcome in _BROUGHT)


def has_brought(summary: Summary) -> bool:
    return any(summary.outcomes.get(outcome) for outcome in _BROUGHT)


class RunEnding(msgspec.Struct, frozen=True):
    """The last lines of one run."""

    directory: Path
    seeds: Sequence[str]
    has_lingered: bool
    unsent: int = 0
    """Seeds that the end came before."""

    def lines(self, summary: Summary, *, is_kept: bool) -> Iterator[str]:
        """The lines that tell of this end. `is_kept`: the directory stays, so that the crawl can go on."""
        if summary.state == "incomplete" and not has_brought(summary):
            yield from self._seed_lines(summary)
        if self.unsent and is_kept:
            yield (
                f"{self.unsent:,} of {show_count(len(self.seeds), 'seed')} were not queued before the end; "
                f"`gossamer resume {self.directory}` queues them"
            )
        if self.has_lingered and is_kept and summary.waiting is not None:
            waiting = summary.waiting
            # For each site whose last answer in the log is an error, the words of that, behind a semicolon.
            errors: dict[str, str] = {}
            for row in self._log(LOOKED_AT * 10):
                if row["event"] in ("page", "robots"):
                    is_one = row["outcome"] in _FAILED and row.get("error")
                    errors[site_of(row["url"])] = f"; {_printable(row['error'])}" if is_one else ""
            reasons = ", ".join(
                f"{name} ({HELD.get(why, why)}{errors.get(name, '')})" for name, why in waiting.hosts.items()
            )
            yield (
                f"{show_count(summary.queued, 'URL')} {'waits' if summary.queued == 1 else 'wait'} for a retry"
                f"{f': {reasons}' if reasons else ''}; the next is due at {waiting.next} at the earliest; "
                f"`gossamer resume {self.directory}` asks for what is due then, by {show_count(summary.queued, 'request')}"
            )
        if summary.state == "incomplete" and is_kept and has_brought(summary) and (urls := self._failing()):
            failed = summary.queued + summary.outcomes.get(Outcome.GONE_AFTER_RETRIES, 0)
            yield f"{'the only URL' if failed == 1 else 'among the URLs'} that failed: {', '.join(urls)}"

    def _seed_lines(self, summary: Summary) -> Iterator[str]:
        rows, robots = self._rows_of_seeds()
        reasons = summary.waiting.hosts if summary.waiting is not None else {}
        for seed in self.seeds[:TOLD_SEEDS]:
            row = rows.get(seed)
            asked = robots.get(seed.partition("#")[0])
            if row is None and asked is not None and asked["outcome"] in _FAILED:
                why = f"its robots.txt did not come: {_reason(asked)}"
            elif row is None:
                met = (
                    why
                    for site, why in reasons.items()
                    if seed.startswith(f"{site}/") or f"//{site.partition('://')[2] or site}/" in seed
                )
                why = next(met, "")
                why = f"{HELD[why]} ({why})" if why in HELD else why or "no answer before the end"
            else:
                why = _reason(row, seed)
            yield f"seed {seed}: {why}"
        if (more := len(self.seeds) - TOLD_SEEDS) > 0:
            # Seeds are fetched first: as many as were never asked for are queued still, or were kept out by a limit.
            waiting = min(more, summary.queued + self.unsent)
            told = [f"{more - waiting:,} more seeds brought no document"] if more > waiting else []
            told += [f"{waiting:,} more seeds were still queued"] if waiting else []
            yield f"... and {', and '.join(told)}"

    def _rows_of_seeds(self) -> tuple[dict[str, Mapping[str, Any]], dict[str, Mapping[str, Any]]]:
        """The last row of the log for each seed, and for each seed the last row of its robots.txt."""
        wanted = self.seeds[:TOLD_SEEDS]
        rows = {"page": dict[str, Mapping[str, Any]](), "robots": dict[str, Mapping[str, Any]]()}
        targets = {}
        for one in self._log(LOOKED_AT):
            if one["event"] in rows:
                rows[one["event"]][one["url"]] = one
                if one.get("relation") == "redirect":
                    targets[one["discovered_from"]] = one
        robots = {seed: row for seed in wanted if (row := rows["robots"].get(urljoin(seed, "/robots.txt")))}
        found = {seed: row for seed in wanted if (row := rows["page"].get(seed))}
        return {seed: _at_the_end(row, targets) for seed, row in found.items()}, robots

    def _failing(self) -> list[str]:
        """Some URLs whose last answer in the log is a failure that a later try may mend, or one after all tries."""
        last: dict[str, str] = {}
        for row in self._log(LOOKED_AT * 10):
            if row["event"] == "page" and row["outcome"] in _FAILED:
                last[row["url"]] = row["outcome"]
            elif row["event"] == "page":
                last.pop(row["url"], None)
        return list(itertools.islice(last, TOLD_URLS))

    def _log(self, most: int) -> Iterator[Mapping[str, Any]]:
        """The first rows of the log, as far as they can be read."""
        with contextlib.suppress(OSError, ValueError), (self.directory / LOG_PATH).open("rb") as log:
            yield from map(msgspec.json.decode, itertools.islice(log, most))


def _at_the_end(row: Mapping[str, Any], targets: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The row of the last URL to which redirects led from that of the first."""
    met = {row["url"]}
    while (target := targets.get(row["url"], row))["url"] not in met:
        met.add((row := target)["url"])
    return row


def _reason(row: Mapping[str, Any], seed: str = "") -> str:
    """Why a URL brought no document; if it is another than the seed, redirects led from there."""
    if seed not in ("", row["url"]):
        return _printable(f"it leads to {row['url']}: {_reason(row)}")
    outcome, status, error = row["outcome"], row.get("status"), row.get("error") or ""
    if outcome == Outcome.ROBOTS_DENIED:
        line = _LINE.search(error)
        return f"robots.txt denies it, line {line[1]}" if line else f"robots.txt denies it; {error}".rstrip("; ")
    if outcome == Outcome.REDIRECT:
        rules = ", ".join(row.get("rejected", ())).replace("_", " ")
        return f"status {status}, whose target is not fetched: {rules or 'it is known already'}"
    rule, _, part = error.partition(": ")
    if outcome == Outcome.BLOCKED and rule in _OPTIONS:
        return f"{option_name(rule)} excludes it{f' ({part})' if part else ''}"
    if outcome == Outcome.BLOCKED and error:
        return error
    if status == 401:
        return "status 401; --auth says with which user and password to ask"
    text = f"status {status}" if status and not error else f"{outcome}; {error}".rstrip("; ")
    return _printable(text)


def _printable(text: str) -> str:
    """Errors may quote what a server sent."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def came_to_nothing(summary: Summary) -> bool:
    """Whether nothing came, and what there was to ask for is still to be asked."""
    is_unfinished = summary.queued or summary.outcomes.get(Outcome.GONE_AFTER_RETRIES)
    return bool(summary.state == "incomplete" and not summary.fetched and not summary.limit and is_unfinished)
