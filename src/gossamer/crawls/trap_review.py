"""Pages that a crawl has set aside: listed for people, confirmed or released by them.

Place in the flow: `gossamer traps` and `resume --release` ask here; a running crawl's steering too. A decision is a setting of the
unit `traps`, so it holds for every later run.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.crawls.directory import read_wiring
from gossamer.engine.wiring import Wiring, with_settings, write
from gossamer.frontier.traps.judging import evidence_of
from gossamer.frontier.traps.memory import WHAT
from gossamer.frontier.traps.watch import written
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import UsageError
from gossamer.values.task import Family, SetAside

if TYPE_CHECKING:
    from gossamer.storage.ledger.ledger import RocksLedger

#: The unit that knows what is suspected, and the word for all of it.
UNIT, ALL = "traps", "all"

#: URLs of a family that are shown, and hosts with unusually many URLs.
SAMPLES, MANY_HOSTS = 5, 20

#: Why nothing is set aside of a family that a person trusts.
_RELEASED = "a person has released it"

#: The bounds of an unusual host: so many URLs, and so many times more than the host in the middle.
MANY, TIMES = 1_000, 10


class ListedFamily(msgspec.Struct, frozen=True):
    """A family of which URLs were set aside."""

    id: str
    family: str
    trap: str
    state: str
    """`suspected`, `confirmed`, or `released`."""
    set_aside: int
    """URLs that wait."""
    probes: int
    """URLs that were fetched all the same, to see whether there is anything new."""
    evidence: str
    samples: list[str]


class ListedHost(msgspec.Struct, frozen=True):
    """A host with unusually many URLs."""

    host: str
    urls: int
    """URLs that were queued."""
    pages: int
    """Pages that came of them so far."""


class Suspicions(msgspec.Struct, frozen=True):
    """The families and hosts that a person may want to look at."""

    families: list[ListedFamily]
    hosts: list[ListedHost]


def suspicions_of(directory: Path) -> Suspicions:
    """The pages that a crawl has set aside, the largest family first, and hosts with unusually many URLs. The crawl may be at work.
    Raises UsageError: there is no crawl; CrawlDirectoryError: its ledger is missing or damaged."""
    settings = _settings(directory)
    said = {name: set(settings.get(name, ())) for name in ("confirmed", "released")}
    families: list[ListedFamily] = []
    hosts: list[ListedHost] = []
    for ledger in ledgers_of(directory):
        with ledger.looking():
            families += [_listed(ledger, row, said) for row in _known(ledger.aside(), settings)]
            hosts += [
                ListedHost(state.host, ledger.tally("host", state.host), state.counters.get("pages", 0))
                for state in ledger.hosts()
            ]
    hosts.sort(key=lambda one: -one.urls)
    middle = hosts[len(hosts) // 2].urls if hosts else 0
    unusual = [
        one for one in hosts[:MANY_HOSTS] if one.urls >= MANY and (one.urls >= TIMES * middle or len(hosts) == 1)
    ]
    return Suspicions(sorted(families, key=lambda one: -one.set_aside), unusual)


def _known(rows: Iterable[SetAside], settings: Mapping[str, Any]) -> list[SetAside]:
    """Those of which something was set aside, and those that a person has decided on and may decide on again."""
    said = {*settings.get("confirmed", ()), *settings.get("released", ())}
    return [row for row in rows if row.count or row.probes or written(row.family) in said]


def _listed(ledger: "RocksLedger", row: SetAside, said: Mapping[str, set[str]]) -> ListedFamily:
    family = row.family
    state = next((name for name, families in said.items() if written(family) in families), "suspected")
    return ListedFamily(
        id=family.id,
        family=family.text,
        trap=family.why,
        state=state,
        set_aside=row.count,
        probes=row.probes,
        evidence=_RELEASED if state == "released" else evidence_of(ledger.learnt((family.owner,), WHAT)[0], family),
        samples=[task.url for task in islice(ledger.aside_tasks(family), SAMPLES)],
    )


# -- decisions


def decided(
    settings: Mapping[str, Any], rows: Iterable[SetAside], confirm: Sequence[str], release: Sequence[str]
) -> dict[str, list[str]]:
    """The settings of the unit `traps` after a person has confirmed and released families. `release`: those of families that
    are none; `all` for every one that is suspected. Raises UsageError: nothing was set aside under one of them."""
    families = {row.family.id: row.family for row in _known(rows, settings)}
    confirmed, released = list(settings.get("confirmed", ())), list(settings.get("released", ()))
    for text in confirm:
        _move(_named(families, text), confirmed, released)
    for text in release:
        suspected = [one for one in families.values() if written(one) not in confirmed]
        for family in suspected if text == ALL else [_named(families, text)]:
            _move(family, released, confirmed)
    return {"confirmed": confirmed, "released": released}


def _named(families: Mapping[str, Family], text: str) -> Family:
    if text in families:
        return families[text]
    known = ", ".join(list(families)[:5]) + (", ..." if len(families) > 5 else "")
    raise UsageError(
        f"nothing is set aside under {text!r}; `gossamer traps DIR` lists the families ({known or 'there are none'})"
    )


def _move(family: Family, to: list[str], out_of: list[str]) -> None:
    text = written(family)
    if text not in to:
        to.append(text)
    if text in out_of:
        out_of.remove(text)


def decided_at_rest(directory: Path, confirm: Sequence[str], release: Sequence[str]) -> dict[str, list[str]]:
    """The same, of a crawl at rest. Nothing is written. Raises UsageError: there is no crawl, it does not look for traps, or
    nothing was set aside under one of the identifiers."""
    return decided(_settings(directory), rows_aside(directory), confirm, release)


def rows_aside(directory: Path) -> list[SetAside]:
    """The pages that all ledgers of a crawl have set aside, at work or not. Raises CrawlDirectoryError: one is damaged."""
    rows: list[SetAside] = []
    for ledger in ledgers_of(directory):
        with ledger.looking():
            rows += ledger.aside()
    return rows


def decide_at_rest(directory: Path, confirm: Sequence[str], release: Sequence[str]) -> None:
    """Let later runs go by what a person has decided."""
    settings = decided_at_rest(directory, confirm, release)
    write(directory / CRAWL_FILE, with_settings(read_wiring(directory), UNIT, settings))


def with_released(wiring: Wiring, directory: Path, release: Sequence[str]) -> Wiring:
    """A copy in which these families are trusted. Raises UsageError: nothing was set aside under one of them."""
    return with_settings(wiring, UNIT, decided_at_rest(directory, (), release))


def _settings(directory: Path) -> Mapping[str, Any]:
    wiring = read_wiring(directory)
    if UNIT not in wiring.providers:
        raise UsageError(f"the crawl in {directory} does not look for traps: it has no unit {UNIT!r}")
    return wiring.providers[UNIT].settings


def told(rows: Iterable[SetAside], directory: Path) -> str:
    waiting = sorted((row for row in rows if row.count), key=lambda row: -row.count)
    if not waiting:
        return ""
    shown = ", ".join(f"{row.count:,} of {row.family.text} ({row.family.why}, {row.family.id})" for row in waiting[:3])
    more = f" and {len(waiting) - 3:,} more families" if len(waiting) > 3 else ""
    which = waiting[0].family.id if len(waiting) == 1 else "ID|all"
    count = sum(row.count for row in waiting)
    what = "URL looks like part of a trap and is" if count == 1 else "URLs look like parts of traps and are"
    return (
        f"{count:,} {what} set aside: {shown}{more}; `gossamer traps {directory}` says why, "
        f"`gossamer resume {directory} --release {which}` fetches {'it' if count == 1 else 'them'}"
    )
