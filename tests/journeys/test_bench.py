"""`gossamer bench` of whole crawls: they run, and their figures add up."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gossamer.cli.main import commands


@pytest.mark.parametrize("name", ["pages", "keeping", "memory"])
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
