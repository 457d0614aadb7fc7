"""What a crawl says when it ends: which seeds brought nothing, what waits and why, and the command that goes on.

Place in the flow: :mod:`crawl` asks when the work is over and reports the lines; the command line prints the sums after them.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.assembly.summary import Summary
from gossamer.flow.quantities import show_count
from gossamer.model.outcome import Outcome
from gossamer.stores.rowlog import LOG_PATH

#: Seeds that get a line each.
TOLD_SEEDS = 20

#: Rows of the log that are searched for the seeds: they are fetched first.
LOOKED_AT = 10_000

#: Outcomes that bring a document, or say that the one we have is still the one, or that there is one nobody wants.
_BROUGHT = (Outcome.OK, Outcome.NOT_MODIFIED, Outcome.TRUNCATED, Outcome.IRRELEVANT)

#: Rules by which the user's own options keep a URL out: each is the name of its option, with what decided after a colon.
_OPTIONS = frozenset({"only", "never", "filter"})

_LINE = re.compile(r"line (\d+)\)$")


def has_documents(counters: Mapping[str, int]) -> bool:
    """Whether any document came: all of them come from seeds, directly or not, so without one no seed brought any."""
    return any(counters.get(f"outcome:{outcome}") for outcome in _BROUGHT)


def option_name(setting: str) -> str:
    """The option of this name as people write it."""
    return f"--{setting.replace('_', '-')}"


class RunEnding:
    """The last lines of one run."""

    def __init__(self, directory: Path, seeds: Sequence[str], *, has_lingered: bool) -> None:
        self._directory = directory
        self._seeds = seeds
        self._has_lingered = has_lingered

    def __repr__(self) -> str:
        return f"<Ending of {self._directory}>"

    def lines(self, summary: Summary, *, is_kept: bool) -> Iterator[str]:
        """What is to be told of this end. `is_kept`: the directory stays, so that the crawl can go on."""
        if summary.state == "incomplete" and not any(summary.outcomes.get(outcome) for outcome in _BROUGHT):
            yield from self._seed_lines(summary)
        if self._has_lingered and is_kept and summary.waiting is not None:
            yield self._waiting_line(summary)

    def _waiting_line(self, summary: Summary) -> str:
        waiting = summary.waiting
        assert waiting is not None
        reasons = ", ".join(f"{name} ({why})" for name, why in waiting.hosts.items())
        return (
            f"{show_count(summary.queued, 'URL')} {'waits' if summary.queued == 1 else 'wait'} for a retry"
            f"{f': {reasons}' if reasons else ''}; the next is due at {waiting.next} at the earliest; "
            f"`gossamer resume {self._directory}` asks for what is due then"
        )

    def _seed_lines(self, summary: Summary) -> Iterator[str]:
        rows = self._rows_of_seeds()
        reasons = summary.waiting.hosts if summary.waiting is not None else {}
        for seed in self._seeds[:TOLD_SEEDS]:
            row = rows.get(seed)
            why = (
                _reason(row)
                if row is not None
                else next(
                    (
                        why
                        for site, why in reasons.items()
                        if seed.startswith(f"{site}/") or f"//{_host(site)}/" in seed
                    ),
                    "no answer before the end",
                )
            )
            yield f"seed {seed}: {why}"
        if (more := len(self._seeds) - TOLD_SEEDS) > 0:
            # Seeds are fetched first: as many as were never asked for are queued still, or were kept out by a limit.
            waiting = min(more, summary.queued)
            told = [f"{more - waiting:,} more seeds brought no document"] if more > waiting else []
            told += [f"{waiting:,} more seeds were still queued"] if waiting else []
            yield f"... and {', and '.join(told)}"

    def _rows_of_seeds(self) -> dict[str, Mapping[str, Any]]:
        """The last row of the log for each seed."""
        wanted = set(self._seeds[:TOLD_SEEDS])
        found: dict[str, Mapping[str, Any]] = {}
        try:
            with (self._directory / LOG_PATH).open("rb") as log:
                for line in itertools.islice(log, LOOKED_AT):
                    row = msgspec.json.decode(line)
                    if row["event"] == "page" and row["url"] in wanted:
                        found[row["url"]] = row
        except (OSError, msgspec.DecodeError):
            return found
        return found


def _host(site: str) -> str:
    return site.partition("://")[2] or site


def _reason(row: Mapping[str, Any]) -> str:
    outcome, status, error = row["outcome"], row.get("status"), row.get("error") or ""
    if outcome == Outcome.ROBOTS_DENIED:
        line = _LINE.search(error)
        return f"robots.txt denies it, line {line[1]}" if line else f"robots.txt denies it; {error}".rstrip("; ")
    if outcome == Outcome.REDIRECT:
        return f"{status}, and its target brought no document"
    rule, _, part = error.partition(": ")
    if outcome == Outcome.BLOCKED and rule in _OPTIONS:
        return f"{option_name(rule)} excludes it{f' ({part})' if part else ''}"
    if outcome == Outcome.BLOCKED and error:
        return error
    text = str(status) if status and not error else f"{outcome}; {error}".rstrip("; ")
    # Errors may quote what a server sent.
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def came_to_nothing(summary: Summary) -> bool:
    """Whether nothing came, and what there was to ask for is still to be asked."""
    is_unfinished = summary.queued or summary.outcomes.get(Outcome.GONE_AFTER_RETRIES)
    return bool(summary.state == "incomplete" and not summary.fetched and not summary.limit and is_unfinished)
