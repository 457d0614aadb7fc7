"""`gossamer bench` of whole crawls: they run, and their figures add up."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gossamer.cli.main import commands


@pytest.mark.parametrize("name", ["pages", "memory"])
def test_a_crawl_is_measured_and_written_down(name: str, tmp_path: Path) -> None:
    kept = tmp_path / "figures.json"
    done = CliRunner().invoke(commands, ["bench", name, "--pages", "150", "--json", str(kept)])
    assert done.exit_code == 0, done.output
    told = json.loads(kept.read_bytes())
    assert told["date"] and told["machine"]["python"]
    table = told["tables"][0]
    assert len(table["rows"]) > 1
    if name == "pages":
        parts = {row[0]: float(row[1]) for row in table["rows"]}
        total = parts.pop("all, as the kernel counts")
        assert sum(parts.values()) == pytest.approx(total, rel=0.01)
        assert abs(parts["not accounted for"]) < 0.05 * total


@pytest.mark.long
def test_pages_of_today_are_crawled_over_tls_and_priced(tmp_path: Path) -> None:
    kept = tmp_path / "figures.json"
    asked = ["today", "--count", "100", "--hosts", "4", "--no-peers", "--profile", "archive", "--json", str(kept)]
    done = CliRunner().invoke(commands, ["bench", *asked])
    assert done.exit_code == 0, done.output
    crawlers, stages = json.loads(kept.read_bytes())["tables"]
    [row] = crawlers["rows"]
    figures = dict(zip(crawlers["columns"], row, strict=True))
    dollars = float(figures["$ a billion pages at 0.0944 $ a vCPU hour"].replace(",", ""))
    assert dollars == pytest.approx(float(figures["ms CPU a page"]) * 1e6 / 3600 * 0.0944, rel=0.01)
    assert 100 <= int(figures["pages"]) < 200
    assert {"start: before the profile", "tables, index and parsers: processes of their own"} <= {
        row[0] for row in stages["rows"]
    }
