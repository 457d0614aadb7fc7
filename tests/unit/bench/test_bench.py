"""Benchmarks account for what they measure, and measure what they say."""

import re
import signal
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from gossamer.bench.harness import BenchReport, apart
from gossamer.bench.pages import Profile, part_of
from gossamer.bench.peers import write_site
from gossamer.cli.demo import benches
from gossamer.cli.main import commands
from gossamer.values.errors import UsageError

SOURCE = Path(__file__).resolve().parents[3] / "src"


@pytest.mark.parametrize("layer", ["fetcher", "frontier", "parsing", "storage"])
def test_every_module_of_a_crawl_belongs_to_a_part(layer: str) -> None:
    names = [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in (SOURCE / "gossamer" / layer).rglob("*.py")
    ]
    assert names
    assert all(part_of(name) for name in names)


def test_helpers_belong_to_their_callers() -> None:
    assert part_of("gossamer.values.url") is None
    assert part_of("gossamer.engine.runner") is None
    assert part_of("importlib._bootstrap") == part_of("importlib")


def test_the_parts_of_a_profile_add_up_to_the_time_of_the_process() -> None:
    profile = Profile()
    before = signal.getsignal(signal.SIGPROF)
    try:
        profile.start()
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        seconds = profile.stop()
        used = time.process_time()
    finally:
        signal.signal(signal.SIGPROF, before)
    assert sum(seconds.values()) == pytest.approx(used, rel=0.02)
    assert seconds["event loop"] > 0.5 * 0.1


def test_a_site_of_files_has_every_page_that_its_pages_link_to(tmp_path: Path) -> None:
    write_site(tmp_path, 120)
    files = {f"/{path.relative_to(tmp_path)}" for path in tmp_path.rglob("*.html")}
    assert len(files) == 120
    linked = {
        link for file in files for link in re.findall(r'href="(/[^"?]*\.html)', Path(f"{tmp_path}{file}").read_text())
    }
    assert {link for link in linked if not link.startswith("/gone/")} <= files


def test_a_report_says_when_and_how_it_was_made() -> None:
    report = BenchReport("x", command="gossamer bench x")
    report.table("a table", "what", "figure").add("one", 1)
    assert report.date in report.text() and report.command in report.text()
    assert b'"date"' in report.json() and b'"command"' in report.json()


def test_benchmarks_are_listed_and_a_misspelt_one_is_refused() -> None:
    listed = CliRunner().invoke(commands, ["bench"]).output
    assert all(name in listed for name in benches())
    refused = CliRunner().invoke(commands, ["bench", "pagse"])
    assert refused.exit_code == 2
    assert "pages" in refused.output


@pytest.mark.parametrize("name", benches())
def test_every_benchmark_says_its_options(name: str) -> None:
    told = CliRunner().invoke(commands, ["bench", name, "--help"])
    assert told.exit_code == 0, told.output
    assert "--json" in told.output


def test_what_is_measured_apart_gives_its_result_back() -> None:
    assert apart("gossamer.bench.pages:part_of", "gossamer.frontier.robots.gate") == "robots"
    with pytest.raises(UsageError, match="status 1"):
        apart("gossamer.bench.pages:part_of")
