"""The page for operators says what is so: its unit is one, its commands and settings exist, its exit statuses are ours."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gossamer.cli.main import all_commands
from gossamer.cli.main import commands as program
from gossamer.cli.query import FOUND
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import properties
from gossamer.values.errors import CrawlDirectoryError, UsageError

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operations.md").read_text("utf-8")
#: Pages with a unit: for a crawl, and for a runtime.
UNITS = {"gossamer-news.service": PAGE, "gossamer-runtime.service": (DOCS / "runtime.md").read_text("utf-8")}


def unit(page: str) -> str:
    return page.partition("```ini\n")[2].partition("```")[0]


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_is_one_that_systemd_takes(name: str, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    file = tmp_path / name
    # The program and the user stand on no machine but the reader's.
    text = unit(UNITS[name]).replace("/usr/local/bin/gossamer", sys.executable)
    text = re.sub("^User=.*$", "User=root", text, flags=re.MULTILINE)
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([analyze, "verify", "--man=no", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def commands() -> list[list[str]]:
    spans = re.findall(r"`(gossamer [^`]+)`", PAGE)
    lines = re.findall(r"(?:ExecStart=\S*/|crawler\s+)(gossamer .*)", PAGE)
    return [shlex.split(line) for line in [*spans, *lines]]


@pytest.mark.parametrize("line", commands(), ids=" ".join)
def test_a_command_that_it_names_has_these_options(line: list[str]) -> None:
    assert line[1] in all_commands()
    told = (
        CliRunner()
        .invoke(program, [line[1], "--help", *(["all"] if line[1] in ("crawl", "resume", "run") else [])])
        .stdout
    )
    options = {word.partition("=")[0] for word in line[2:] if word.startswith("--")}
    assert not {option for option in options if f"{option} " not in told and f"{option}\n" not in told}


def test_an_option_that_it_names_alone_is_one_of_a_crawl() -> None:
    known = {f"--{name.replace('_', '-')}" for name in (one.name for one in properties(all_options()))}
    named = set(re.findall(r"`(--[a-z-]+)", PAGE)) - {"--json", "--deep", "--no-warc", "--set"}
    assert not named - known


def test_its_exit_statuses_are_those_of_the_errors() -> None:
    said = dict(re.findall(r"^\| (\d) \| (.*?) \|", PAGE, re.MULTILINE))
    assert set(said) == {"0", "1", "2", "3", "4", "5"}
    assert "wrong" in said[str(UsageError.exit_code)] and "damaged" in said[str(CrawlDirectoryError.exit_code)]
    assert "report" in said[str(FOUND)]
