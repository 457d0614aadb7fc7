"""Places of hosts by measured latencies: rules for a :class:`~gossamer.services.designation.ring.PlaceTable`, as plain code.

Place in the flow: whoever has measured, by agents at several places, makes rules here, and gives them to the ring (`places`), or to
the policy `by-place` of a marshaler. A domain that was measured from several places goes to the nearest one. Of most domains only
one agent knows a latency; they go by their suffix, if the domains below it are nearer to one place than to all others.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

#: Domains of a suffix that a place must have measured: the median of fewer says little.
ENOUGH = 8

#: Part of the latency that another place must save: what is nearly as near is divided by the ring, which is even.
WORTH = 0.2


class MeasuredLatency(NamedTuple):
    """What an agent has measured of one domain."""

    place: str
    """Of the agent."""
    domain: str
    seconds: float
    """The usual time until a connection is open, or until an answer begins."""


def rules_of(measured: Iterable[MeasuredLatency], *, enough: int = ENOUGH, worth: float = WORTH) -> list[str]:
    """Rules as `SUFFIX=PLACE`, in order; a domain has one of its own only where its suffix leads elsewhere, or nowhere.

    Args:
        measured: in any order; of several for one domain at one place, the median counts.
        enough: domains of a suffix that a place must have measured.
        worth: part of the latency that the nearest place must save beside the next one.
    """
    of_domains: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, domain, seconds in measured:
        of_domains[domain][place].append(seconds)
    of_suffixes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    medians = {domain: {place: median(times) for place, times in those.items()} for domain, those in of_domains.items()}
    for domain, those in medians.items():
        for suffix in _suffixes(domain):
            for place, seconds in those.items():
                of_suffixes[suffix][place].append(seconds)
    found: dict[str, str] = {}
    for suffix in sorted(of_suffixes, key=lambda name: name.count(".")):
        known = {place: median(times) for place, times in of_suffixes[suffix].items() if len(times) >= enough}
        _add(found, suffix, known, worth)
    for domain in sorted(medians):
        _add(found, domain, medians[domain], worth)
    return [f"{name}={place}" for name, place in sorted(found.items())]


def _add(found: dict[str, str], name: str, known: dict[str, float], worth: float) -> None:
    """Add a rule where one place is nearer than all others, and a wider rule does not say so already."""
    if len(known) < 2:
        return
    (least, place), (next_, _), *_ = sorted((seconds, place) for place, seconds in known.items())
    if least > (1 - worth) * next_:
        return
    wider = next((found[suffix] for suffix in _suffixes(name) if suffix in found), "")
    if place != wider:
        found[name] = place


def _suffixes(domain: str) -> Iterator[str]:
    """What stands behind each dot of a name, the longest first; nothing of an address."""
    if ":" in domain or domain.rpartition(".")[2].isdigit():
        return
    while domain := domain.partition(".")[2]:
        yield domain
