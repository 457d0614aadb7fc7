"""The benchmark of the marshaler tells what came out of each load; the whole of it is `gossamer bench marshal`."""

from tools.bench.exchange import marshal


def test_each_load_is_told_with_what_was_held_back_and_given_away() -> None:
    report = marshal(urls=2_000, repeats=1)
    table, whole = report.tables
    held = {row[0]: row[3] for row in table.rows}
    domains = {row[0]: row[4] for row in table.rows}
    assert float(held.pop("links by Zipf's law").rstrip("%")) > 20
    assert set(held.values()) == {"0.0%"}
    assert domains["a new domain in ten URLs"] == "200"
    assert domains["each URL once"] == domains["each with a port"] == "2,000"
    assert [row[0] for row in whole.rows] == [row[0] for row in table.rows]
    assert all(float(row[1]) > 0 for row in (*table.rows, *whole.rows))
