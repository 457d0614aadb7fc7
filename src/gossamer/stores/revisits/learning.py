"""What visits teach of the rates of change: of the page, of its kind on its host, of its kind anywhere; and of its host's signals.

Place in the flow: the schedule asks for the outlook of a page when it says how long the page waits, and gives each visit that says
something. What is learnt lies in a space of its own: under each host a group for each kind of page and the record of its signals,
under no host a group for each kind. They change in the group that keeps the visit.
"""

import msgspec

from gossamer.contracts.ledger import Group
from gossamer.contracts.spaces import Space
from gossamer.model.change_rate import (
    NO_SIGNALS,
    USUAL,
    Belief,
    RateGroup,
    Signals,
    believed,
    grouped,
    judged,
    learnt,
    prior_of,
)
from gossamer.model.known import KnownPage

#: A host has fewer than twenty kinds of pages, and so has the whole crawl: kinds are words of ours.
RATES = Space("revisit-rates", value_bytes=256)

_KIND, _ALL, _SIGNALS = b"k", b"a", b"s"

_group = msgspec.msgpack.Decoder(RateGroup)
_signals = msgspec.msgpack.Decoder(Signals)
_encode = msgspec.msgpack.Encoder().encode


def _kept(group: Group, host: str | None, key: bytes) -> RateGroup:
    data = group.get(RATES, host, key)
    return RateGroup() if data is None else _group.decode(data)


def usual(group: Group) -> Belief:
    """What is believed of a page of which nothing is known, not even its host."""
    return prior_of(_kept(group, None, _ALL), USUAL)


def prior(group: Group, host: str, kind: str) -> Belief:
    """What is believed of a page of this host and kind before its own visits."""
    key = _KIND + kind.encode()
    return prior_of(_kept(group, host, key), prior_of(_kept(group, None, key), usual(group)))


def signals_of(group: Group, host: str) -> Signals:
    """How far what a host says of changes has proved true."""
    data = group.get(RATES, host, _SIGNALS)
    return NO_SIGNALS if data is None else _signals.decode(data)


def learn(group: Group, host: str, before: KnownPage, page: KnownPage) -> KnownPage:
    """Stage what a visit teaches.

    Args:
        group: in which the visit is kept.
        host: of the page.
        before: what was known of the page.
        page: what is known with this visit; it has one visit more than before.

    Returns:
        The page with the evidence of this visit.
    """
    time, is_changed = page.visited_at - before.visited_at, page.changes > before.changes
    believed_before, signals = prior(group, host, page.kind), signals_of(group, host)
    evidence = learnt(believed_before, before.evidence, time, is_changed, signals, before.signalled)
    told = judged(signals, believed(believed_before, before.evidence), time, is_changed, before.signalled)
    if told is not signals and (before.signalled or signals.true or signals.false):
        group.put(RATES, host, _SIGNALS, _encode(told))
    belief = believed(believed_before, evidence)
    key = _KIND + page.kind.encode()
    for of, name in ((host, key), (None, key), (None, _ALL)):
        group.put(RATES, of, name, _encode(grouped(_kept(group, of, name), belief, time)))
    return msgspec.structs.replace(page, evidence=evidence, signalled=0)
