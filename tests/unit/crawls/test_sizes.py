"""Sizes of the data sets that are directories, and of several as one list."""

from pathlib import Path

from gossamer.crawls.control.waits import DataSet, data_sets, walked_sizes


def put(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_tables_and_rows_are_one_data_set_and_a_sieve_is_one_where_there_is_one(tmp_path: Path) -> None:
    assert walked_sizes(tmp_path) == {"tables": 0}
    put(tmp_path / "tables/pages/a.parquet", 10)
    put(tmp_path / "state/agent-00/rows/links.jsonl", 7)
    put(tmp_path / "state/agent-00/ledger/000001.sst", 1_000)
    assert walked_sizes(tmp_path) == {"tables": 17}
    put(tmp_path / "state/agent-00/sieve/run-1", 5)
    assert walked_sizes(tmp_path) == {"tables": 17, "sieve": 5}


def test_each_data_set_has_its_growth_and_the_urls_that_it_holds() -> None:
    found = data_sets({"seen": 10, "archive": 20}, {"archive": 1.23}, discovered=4, queued=2)
    assert found == [DataSet("seen", 10, items=4), DataSet("archive", 20, growth=1.2)]
