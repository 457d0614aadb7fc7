"""Conformance suite for the spaces of a ledger: run it over an implementation of your own."""

from collections.abc import Callable

from gossamer.contracts.ledger import Ledger
from gossamer.contracts.spaces import KEY_BYTES, Space

#: Closes what is open as a kill would, and opens it again; at first it opens an empty one.
Reopen = Callable[[], Ledger]

ONE = Space("suite-one", value_bytes=20, host_bytes=60, common_bytes=29)
TWO = Space("suite-one-more", value_bytes=20, host_bytes=60)
"""Its name begins with the name of the other space, so that keys which are not kept apart would collide."""


class _Broken(Exception):
    """A failing stage raises this inside a group."""


def check_spaces(reopen: Reopen) -> None:
    """Check that the spaces of a ledger, empty at first, keep their promises."""
    ledger = _opened(reopen)
    _check_groups(ledger)
    for _ in range(2):
        _check_kept(ledger)
        ledger = _opened(reopen)
    _check_bounds(ledger)
    _check_ends(ledger)
    ledger = _opened(reopen)
    figures = {one.owner: one for one in ledger.spaces.figures()}
    assert [figures[space.owner].wrong for space in (ONE, TWO)] == [0, 0], "the bytes are not those that were counted"


def _opened(reopen: Reopen) -> Ledger:
    ledger = reopen()
    for space in (ONE, TWO):
        ledger.spaces.open(space)
    return ledger


def _check_groups(ledger: Ledger) -> None:
    try:
        with ledger.group() as group:
            assert group.put(ONE, "a.test", b"k", b"lost")
            assert group.get(ONE, "a.test", b"k") == b"lost", "a group knows what it stages"
            raise _Broken
    except _Broken:
        pass
    assert ledger.spaces.get(ONE, "a.test", b"k") is None, "a group that raised left something"
    with ledger.group() as group:
        assert group.get(ONE, "a.test", b"k") is None
        for key in (b"k2", b"k1", b"other", b"k1"):
            assert group.put(ONE, "a.test", key, b"of " + key)
        assert group.put(ONE, "b.test", b"", b"alone") and group.put(TWO, "a.test", b"k1", b"two")
        assert group.put(ONE, None, b"k1", b"common")
        assert ledger.spaces.get(ONE, "a.test", b"k1") is None, "a staged entry was kept before its group"
        assert list(group.scan(ONE, "a.test", b"k")) == [(b"k1", b"of k1"), (b"k2", b"of k2")]
        assert list(group.scan(ONE, "a.test", b"k", b"k2")) == [(b"k2", b"of k2")], "a scan starts where it was told to"
        group.delete(ONE, "a.test", b"k2")
        group.delete(ONE, "a.test", b"never")
        assert group.get(ONE, "a.test", b"k2") is None, "a group forgot that an entry ends"
    with ledger.group() as group:
        assert group.put(ONE, "a.test", b"k3", b"3") and group.put(ONE, "a.test", b"k0", b"0")
        group.delete(ONE, "a.test", b"k1")
        assert group.put(ONE, "a.test", b"other", b"new")
        found = list(group.scan(ONE, "a.test"))
        assert found == [(b"k0", b"0"), (b"k3", b"3"), (b"other", b"new")], "kept and staged entries, in order"


def _check_kept(ledger: Ledger) -> None:
    spaces = ledger.spaces
    assert list(spaces.scan(ONE, "a.test")) == [(b"k0", b"0"), (b"k3", b"3"), (b"other", b"new")]
    assert list(spaces.scan(ONE, "a.test", b"k3")) == [(b"k3", b"3")]
    assert list(spaces.scan(ONE, "a.test", b"k", b"k1")) == [(b"k3", b"3")], "a scan starts where it was told to"
    assert list(spaces.scan(ONE, "a.test", b"k", b"a")) == list(spaces.scan(ONE, "a.test", b"k"))
    assert list(spaces.scan(TWO, "a.test")) == [(b"k1", b"two")], "two owners met"
    assert list(spaces.scan(ONE, None)) == [(b"k1", b"common")], "entries without a host lie apart"
    assert list(spaces.scan(TWO, None)) == [] and list(spaces.scan(ONE, "never.test")) == []
    assert spaces.get_many(ONE, ["b.test", "never.test", "a.test"], b"") == [b"alone", None, None]
    assert spaces.get(ONE, "b.test") == b"alone"
    told = sorted((one.owner, one.version, one.key, one.value) for one in spaces.of_host("a.test"))
    kept = [(space.owner, 1, *entry) for space in (ONE, TWO) for entry in spaces.scan(space, "a.test")]
    assert told == sorted(kept), "what is exported with a host is what lies under it, whosever it is"
    assert list(spaces.of_host("never.test")) == []
    walked = list(spaces.walk(ONE))
    assert sorted(value for _, value in walked) == [b"0", b"3", b"alone", b"new"], (
        "what lies under all hosts, each once"
    )
    for place, (mark, _) in enumerate(walked):
        assert list(spaces.walk(ONE, mark)) == walked[place + 1 :], "a walk goes on behind its mark"


def _check_bounds(ledger: Ledger) -> None:
    before = list(ledger.spaces.scan(ONE, "a.test"))
    used = sum(len(key) + len(value) for key, value in before)
    with ledger.group() as group:
        assert not group.put(ONE, "a.test", b"v", b"x" * 21), "a value beyond its bound was taken"
        assert not group.put(ONE, "a.test", b"k" * (KEY_BYTES + 1), b""), "a key beyond its bound was taken"
        most = 0
        while group.put(ONE, "a.test", b"%02d" % most, b"12345678"):
            most += 1
        assert most == (60 - used) // 10, "the bytes under a host are not bounded as the owner declared"
        assert group.put(ONE, "a.test", b"00", b"1"), "an entry that becomes smaller has room"
        assert group.put(ONE, "c.test", b"00", b"12345678"), "one host's bytes were counted as another's"
        assert not group.put(ONE, None, b"k2", b"x" * 20), "what belongs to no host is not bounded"
    assert ledger.counters()["full:suite-one"] == 4, "an entry that a bound kept out was not counted"


def _check_ends(ledger: Ledger) -> None:
    with ledger.group() as group:
        for key, _ in list(group.scan(ONE, "a.test")):
            group.delete(ONE, "a.test", key)
        assert list(group.scan(ONE, "a.test")) == []
        assert all(group.put(ONE, "a.test", b"%02d" % number, b"12345678") for number in range(6)), "room was lost"
    assert len(list(ledger.spaces.scan(ONE, "a.test"))) == 6
