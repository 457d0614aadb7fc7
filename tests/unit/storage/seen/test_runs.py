"""Runs and the arithmetic of merges, against sets in memory."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.storage.seen.runs import (
    BLOCK,
    CHUNK,
    FAN,
    SLICE,
    SMALLEST,
    FingerprintMaker,
    Highs,
    Lows,
    RunEntry,
    SieveKeys,
    SieveRun,
    crowded,
    in_order,
    numbers,
    sift,
    write_run,
)
from gossamer.values.errors import CrawlDirectoryError

#: Few values of `high`, so that many entries share one.
PAIRS = st.sets(st.tuples(st.integers(0, 12), st.integers(0, 5)), max_size=60)


def arrays(pairs: list[tuple[int, int]]) -> tuple[Highs, Lows]:
    return np.array([h for h, _ in pairs], np.uint64), np.array([low for _, low in pairs], np.uint32)


def run_of(directory: Path, pairs: set[tuple[int, int]], name: str = "run-1") -> SieveRun:
    """Sorted by `high` alone: entries that share it stand in the order of the set."""
    return write_run(directory, name, [arrays(sorted(pairs, key=lambda pair: pair[0]))], sync=False)


@settings(deadline=None)
@given(kept=PAIRS, asked=PAIRS)
def test_a_run_holds_what_was_written(tmp_path_factory: pytest.TempPathFactory, kept: set, asked: set) -> None:
    run = run_of(tmp_path_factory.mktemp("runs"), kept)
    pairs = sorted(asked)
    assert run.holds(*arrays(pairs)).tolist() == [pair in kept for pair in pairs]
    run.close()


def test_entries_that_share_their_first_number_are_found_across_blocks(tmp_path: Path) -> None:
    shared = [(7, low) for low in range(BLOCK + 3)]
    pairs = [(n // 2, 0) for n in range(10)] + shared + [(n, 1) for n in range(8, 4 * BLOCK)]
    run = write_run(tmp_path, "run-1", [arrays(pairs)], sync=False)
    for pair in [(7, 0), (7, BLOCK - 1), (7, BLOCK + 2), (8, 1), (4 * BLOCK - 1, 1)]:
        assert run.holds(*arrays([pair])).tolist() == [True]
    assert run.holds(*arrays([(7, BLOCK + 3)])).tolist() == [False]
    assert run.holds(*arrays([(5 * BLOCK, 1)])).tolist() == [False]
    run.close()


@pytest.mark.parametrize("dense", [1, 7, BLOCK, 40 * BLOCK])
def test_look_ups_are_right_over_many_slices(tmp_path: Path, dense: int) -> None:
    draws = np.random.default_rng(5)
    high = np.sort(draws.integers(0, 1 << 62, 3 * SLICE * BLOCK, dtype=np.uint64))
    low = draws.integers(0, 1 << 32, len(high), dtype=np.uint32)
    run = write_run(tmp_path, "run-1", [(part, low[:0]) for part in (high[:0],)] + [(high, low)], sync=False)
    for shift, expected in ((0, True), (1, False)):
        assert (run.holds(high[::dense] + np.uint64(shift), low[::dense]) == expected).all()
    assert run.holds(high[:0], low[:0]).tolist() == []
    run.close()


def test_a_merge_of_runs_has_all_entries_in_order(tmp_path: Path) -> None:
    draws = np.random.default_rng(3)
    runs, everything = [], []
    for number, size in enumerate([0, 1, 1_000, CHUNK, 2 * CHUNK + 7]):
        high = np.sort(draws.integers(0, 1 << 20, size, dtype=np.uint64))
        low = draws.integers(0, 1 << 32, size, dtype=np.uint32)
        runs.append(write_run(tmp_path, f"run-{number}", [(high, low)], sync=False))
        everything += list(zip(high.tolist(), low.tolist(), strict=True))
    one = write_run(tmp_path, "run-all", in_order(runs), sync=False)
    records = one.read(0, one.count)
    assert (np.diff(records["high"].astype(np.int64)) >= 0).all()
    assert sorted(everything) == sorted(zip(records["high"].tolist(), records["low"].tolist(), strict=True))
    for run in [*runs, one]:
        run.close()


@settings(deadline=None)
@given(before=st.lists(st.integers(0, 30), max_size=30), offered=st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_the_first_offer_of_a_new_url_is_new(
    tmp_path_factory: pytest.TempPathFactory, before: list[int], offered: list[int]
) -> None:
    directory, fingerprints = tmp_path_factory.mktemp("runs"), FingerprintMaker(5)
    old = sift(fingerprints.of(map(url, before)), [])
    run = write_run(directory, "run-1", [(old.high, old.low)], sync=False)
    sifted = sift(fingerprints.of(map(url, offered)), [run])
    expected = [n not in before and n not in offered[:place] for place, n in enumerate(offered)]
    assert sifted.new.tolist() == expected
    assert len(sifted.high) == sum(expected)
    run.close()


def url(number: int) -> str:
    return f"http://h{number % 3}.test/{number}"


def test_fingerprints_that_differ_in_their_second_number_alone_are_two() -> None:
    keys = SieveKeys()
    for low in (9, 4, 9, 4, 7):
        keys.hosts += b"\0\0\0\1"
        keys.digests += (1).to_bytes(8) + low.to_bytes(4) + bytes(4)
    assert sift(keys, []).new.tolist() == [True, True, False, False, True]


def test_the_urls_of_a_host_lie_together_whatever_the_scheme() -> None:
    urls = ["http://a.test/1", "http://b.test/1", "https://a.test/2", "https://a.test", "http://a.test/9"]
    high, _ = numbers(FingerprintMaker(1).of(urls))
    hosts = (high >> np.uint64(40)).tolist()
    assert hosts[0] == hosts[2] == hosts[3] == hosts[4] != hosts[1]
    assert len(set(high.tolist())) == 5


@settings(deadline=None)
@given(st.lists(st.from_regex(r"(http|ftp|s):/?/?[ab]{0,2}(/[ab]?){0,3}", fullmatch=True), max_size=12))
def test_a_fingerprint_does_not_depend_on_the_urls_beside_it(urls: list[str]) -> None:
    together = numbers(FingerprintMaker(1).of(urls))[0].tolist()
    assert together == [int(numbers(FingerprintMaker(1).of([url]))[0][0]) for url in urls]


def test_another_secret_makes_other_fingerprints() -> None:
    [one], [two] = (numbers(FingerprintMaker(secret).of(["http://a.test/"]))[0] for secret in (1, 2))
    assert one != two


def test_runs_of_about_one_size_become_one() -> None:
    assert crowded([10] * (FAN - 1)) == []
    assert crowded([10, SMALLEST * FAN * 2] + [300] * (FAN - 1)) == [0, *range(2, FAN + 1)]
    assert crowded([SMALLEST * FAN] * FAN) == list(range(FAN))


def test_after_any_number_of_merges_few_runs_stand() -> None:
    sizes: list[int] = []
    for _ in range(2_000):
        sizes.append(1_000)
        while places := crowded(sizes):
            joined = sum(sizes[place] for place in places)
            sizes = [size for place, size in enumerate(sizes) if place not in places] + [joined]
    assert sum(sizes) == 2_000_000 and len(sizes) < 4 * FAN


@pytest.mark.parametrize("harm", ["missing", "short", "long"])
def test_a_damaged_run_is_refused_by_name(tmp_path: Path, harm: str) -> None:
    run = run_of(tmp_path, {(1, 1), (2, 2)})
    run.close()
    if harm == "missing":
        run.path.unlink()
    else:
        run.path.write_bytes(run.path.read_bytes()[:-1] if harm == "short" else run.path.read_bytes() + b"x")
    with pytest.raises(CrawlDirectoryError, match="run-1 is damaged"):
        SieveRun(tmp_path, RunEntry("run-1", 2))
