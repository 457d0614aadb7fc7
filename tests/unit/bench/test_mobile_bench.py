"""The benchmark of mobile crawlers judges every page once, and tells what came home."""

from pathlib import Path

import pytest

from gossamer.bench.harness import BenchReport
from gossamer.values.errors import UsageError
from tools.bench.mobile import LARGEST, ROWS, SMALLEST, judge, made_pages, run, site_pages


def test_every_row_judges_all_pages_and_only_what_is_relevant_comes_home() -> None:
    report = BenchReport("mobile")
    judge(report, made_pages(8))
    [table] = report.tables
    rows = {row[0]: row for row in table.rows}
    assert set(ROWS) < set(rows)
    sent = {name: int(row[3].replace(",", "")) for name, row in rows.items()}
    assert max(sent["URL, head and links"], sent["text"], sent["keywords"]) < 2_000
    assert sent["all brought home"] > 40_000 < sent["main text alone brought home"]


def test_pages_are_as_large_as_they_are_said_to_be(tmp_path: Path) -> None:
    assert all(SMALLEST <= len(page) <= 1.2 * LARGEST for page in made_pages(5).values())
    for name, size in (("small.html", 100), ("b.html", SMALLEST), ("a.html", LARGEST), ("large.html", LARGEST + 1)):
        (tmp_path / name).write_bytes(b"x" * size)
    assert [path.rpartition("/")[2] for path in site_pages([tmp_path], 10)] == ["a.html", "b.html"]
    with pytest.raises(UsageError, match="no HTML file of 25000 to 35000 bytes"):
        run(5, [tmp_path / "nothing"])
