"""Spaces on the disk: who may open them, how they are migrated, where they lie."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.storage.contract import Space, SpaceFigures
from gossamer.storage.ledger.layout import LedgerKeys
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.store import RocksStore
from gossamer.values.errors import CrawlDirectoryError

pytestmark = pytest.mark.stores

LIMITS = LedgerSheet(cache=1 << 20, buffers=1 << 20, log=1 << 20)

FIRST = Space("plug-in")


def longer(key: bytes, value: bytes) -> tuple[bytes, bytes] | None:
    """The migration of these tests: even numbers grow, odd ones go."""
    return (b"even/" + key, value * 2) if int(key) % 2 == 0 else None


SECOND = Space("plug-in", version=2, migrations=(longer,))


def opened(directory: Path) -> RocksLedger:
    ledger = RocksLedger(LedgerSheet(directory=str(directory)))
    ledger.open()
    return ledger


def filled(directory: Path, entries: int = 10) -> RocksLedger:
    """A ledger with entries of the first version under two hosts and under none."""
    ledger = opened(directory)
    ledger.spaces.open(FIRST)
    with ledger.group() as group:
        for number in range(entries):
            for host in ("a.test", "b.test", None):
                assert group.put(FIRST, host, b"%d" % number, b"v%d" % number)
    return ledger


def test_what_a_newer_program_wrote_is_refused_and_stays(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    ledger.spaces.open(SECOND)
    with pytest.raises(CrawlDirectoryError, match="'plug-in' of version 2, and this program knows 1") as refused:
        ledger.spaces.open(FIRST)
    assert refused.value.exit_code == 5
    ledger.abandon()
    ledger = opened(tmp_path)
    ledger.spaces.open(SECOND)
    assert ledger.spaces.get(SECOND, "a.test", b"even/4") == b"v4v4"
    ledger.close()


def test_a_space_that_only_looks_is_not_migrated(tmp_path: Path) -> None:
    filled(tmp_path).close()
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    with ledger.looking():
        ledger.spaces.open(FIRST)
        assert ledger.spaces.get(FIRST, "a.test", b"1") == b"v1"
        with pytest.raises(CrawlDirectoryError, match="of an older version; resume the crawl"):
            ledger.spaces.open(SECOND)
        ledger.spaces.open(Space("never-written"))


def test_a_migration_changes_each_entry_once_and_counts_its_bytes(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    ledger.spaces.open(SECOND)
    wanted = [(b"even/%d" % number, b"v%d" % number * 2) for number in range(0, 10, 2)]
    for host in ("a.test", "b.test", None):
        assert list(ledger.spaces.scan(SECOND, host)) == wanted
    size = 3 * sum(len(key) + len(value) for key, value in wanted)
    assert ledger.spaces.figures() == [SpaceFigures("plug-in", 2, 15, size, wrong=0)]
    ledger.close()


@pytest.mark.parametrize("passing", [1, 2, 3])
def test_a_migration_that_is_killed_goes_on(tmp_path: Path, passing: int) -> None:
    filled(tmp_path, 3_000).close()
    code = (
        "import sys\n"
        "from gossamer.storage.contract import Space\n"
        "from gossamer.storage.ledger.ledger import RocksLedger, LedgerSheet\n"
        "def longer(key, value):\n"
        "    return (b'even/' + key, value * 2) if int(key) % 2 == 0 else None\n"
        "ledger = RocksLedger(LedgerSheet(directory=sys.argv[1]))\n"
        "ledger.open()\n"
        "print('open', flush=True)\n"
        "ledger.spaces.open(Space('plug-in', version=2, migrations=(longer,)))\n"
    )
    # The first passings are those of opening the ledger itself.
    environment = {**os.environ, "GOSSAMER_CRASH": f"recovery:{4 + passing}"}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True)
    assert done.returncode == -9 and b"open" in done.stdout, done.stderr.decode()
    ledger = opened(tmp_path)
    with pytest.raises(CrawlDirectoryError, match="version 2"):
        ledger.spaces.open(FIRST)
    ledger.spaces.open(SECOND)
    for host in ("a.test", "b.test", None):
        assert len(list(ledger.spaces.scan(SECOND, host))) == 1_500
    assert [one.wrong for one in ledger.spaces.figures()] == [0]
    ledger.close()


def test_bytes_of_absent_owners_stay_and_are_told(tmp_path: Path) -> None:
    filled(tmp_path).close()
    ledger = opened(tmp_path)
    with ledger.group() as group:
        group.count("nothing-of-theirs")
    [found] = ledger.spaces.figures()
    assert (found.owner, found.version, found.keys, found.wrong) == ("plug-in", 1, 30, 0)
    ledger.close()


def test_a_space_that_nobody_opened_is_not_written(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with pytest.raises(ValueError, match="is not open"), ledger.group() as group:
        group.put(FIRST, "a.test", b"k", b"v")
    for broken in (Space("Upper"), Space(""), Space("a" * 33), Space("ok", version=2), Space("ok", version=0)):
        with pytest.raises(ValueError, match=r"cannot be called|one migration for each step"):
            ledger.spaces.open(broken)
    ledger.close()


def test_entries_that_a_hand_over_drops_are_gone_for_the_groups_between_its_steps(tmp_path: Path) -> None:
    ledger = filled(tmp_path)
    with ledger.rewriting(is_at_work=True) as rewriting:
        assert ledger.spaces.get(FIRST, "a.test", b"1") == b"v1"
        rewriting.drop("spaces", [ledger.spaces.where(FIRST, "a.test", b"1")[1]])
        with ledger.group() as group:
            assert group.get(FIRST, "a.test", b"1") is None
            assert group.get(FIRST, "a.test", b"2") == b"v2"
    ledger.close()


def test_what_is_under_a_host_lies_in_the_range_of_its_domain(tmp_path: Path) -> None:
    """What a hand-over moves is one range for each family of keys."""
    ledger = filled(tmp_path)
    ledger.close()
    store = RocksStore(tmp_path / "state/agent-00/ledger", LIMITS)
    secret = int.from_bytes(store.get("meta", b"secret") or b"")
    domains = {LedgerKeys(secret).host(host)[:4] for host in ("a.test", "b.test")}
    assert {key[:4] for key, _ in store.scan("spaces", b"", b"\xff" * 11)} == domains
    store.close()


KEYS = st.binary(max_size=3)
STEPS = st.lists(
    st.tuples(st.sampled_from(["a.test", "b.test", None]), KEYS, st.one_of(st.none(), st.binary(max_size=6))),
    max_size=12,
)
SMALL = msgspec.structs.replace(FIRST, host_bytes=24, common_bytes=24, value_bytes=5)


@settings(max_examples=settings.default.max_examples // 5, deadline=None)  # each opens a store on the disk
@given(groups=st.lists(st.tuples(STEPS, st.booleans()), max_size=5))
def test_a_space_is_a_bounded_table_that_changes_with_its_groups(
    tmp_path_factory: pytest.TempPathFactory, groups: list[tuple[list[tuple[str | None, bytes, bytes | None]], bool]]
) -> None:
    ledger = opened(tmp_path_factory.mktemp("ledger"))
    ledger.spaces.open(SMALL)
    known: dict[tuple[str | None, bytes], bytes] = {}
    for steps, is_kept in groups:
        then = dict(known)
        try:
            with ledger.group() as group:
                for host, key, value in steps:
                    if value is None:
                        then.pop((host, key), None)
                        group.delete(SMALL, host, key)
                        continue
                    rest = sum(len(k) + len(v) for (of, k), v in then.items() if of == host and k != key)
                    fits = len(value) <= 5 and rest + len(key) + len(value) <= 24
                    assert group.put(SMALL, host, key, value) is fits
                    if fits:
                        then[host, key] = value
                    assert list(group.scan(SMALL, host)) == entries(then, host)
                if not is_kept:
                    raise InterruptedError
        except InterruptedError:
            then = known
        known = then
        for host in ("a.test", "b.test", None):
            assert list(ledger.spaces.scan(SMALL, host)) == entries(known, host)
    assert all(one.wrong == 0 for one in ledger.spaces.figures())
    ledger.close()


def entries(known: dict[tuple[str | None, bytes], bytes], host: str | None) -> list[tuple[bytes, bytes]]:
    return sorted((key, value) for (of, key), value in known.items() if of == host)
