"""`crawl --items FILE`: the file grows while the crawl runs, and holds the items of a clean run whatever was killed."""

import csv
import importlib.resources
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _duckdb
import pytest
from tests.processors import own_processors
from tests.waiting import until

import gossamer
from gossamer.cli.main import main
from gossamer.query.database import Database
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")

KILLS = 4


@pytest.fixture
def wiring(tmp_path: Path) -> Path:
    """The shipped wiring with a processor that finds an item in every page."""
    text = importlib.resources.files("gossamer.crawls").joinpath("wirings/default.toml").read_text()
    text = text.replace('"text/html" = "html"', '"text/html" = ["html", "tags"]')
    path = tmp_path / "wiring.toml"
    path.write_text(text + '\n[providers.tags]\nuse = "tag-counter"\nsettings = { items = true }\n')
    return path


def start(seed: str, directory: Path, wiring: Path, *options: str) -> "subprocess.Popen[bytes]":
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, "-m", "gossamer", "crawl", seed, "-o", str(directory), "--delay", "0", "--per-host", "4"]
    return subprocess.Popen(
        [*command, "--wiring", str(wiring), "--set", "log.segment_bytes=10000", "--quiet", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def items(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".csv":
        with file.open(newline="") as lines:
            return list(csv.DictReader(lines))
    if file.suffix == ".json":
        found: list[dict[str, Any]] = json.loads(file.read_bytes())
        return found
    if file.suffix == ".parquet":
        answer = _duckdb.connect().execute(f"SELECT * FROM '{file}'")
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.mark.long
def test_item_files_have_the_items_of_a_clean_run_whatever_is_killed(tmp_path: Path, wiring: Path) -> None:
    directory, chance = tmp_path / "crawl", random.Random(11)
    files = [tmp_path / f"items.{form}" for form in ("jsonl", "csv", "json", "parquet")]
    keyed = [word for file in files for word in ("--items", str(file))]
    with FakeWeb.tree(4, 4, latency=0.05) as web:
        seed = web.url("/")
        for _ in range(KILLS):
            has_begun = (directory / "crawl.toml").exists()
            child = start(seed, directory, wiring, *(["--resume"] if has_begun else keyed))
            web.wait_for(len(web.requests) + chance.randrange(15, 50))
            if chance.random() < 0.5:
                # The process that writes the files looks once a second: some kills come after it took rows, some before.
                time.sleep(chance.random() / 2)
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        done = start(seed, directory, wiring, "--resume")
        _, said = done.communicate(timeout=HUNG_AFTER)
        assert done.returncode == 0, said.decode()
        expected = {web.url(path) for path in web.expected}
    with Database(directory) as database:
        kept = Counter(list(database.ask("SELECT kind, url, visit FROM items_all")))
    for file in files:
        found = items(file)
        assert Counter((row["kind"], row["url"], row["visit"]) for row in found) == kept, file
        assert {row["url"] for row in found} == expected
        assert max(Counter(row["visit"] for row in found).values()) == 1


def test_an_item_file_grows_while_the_crawl_runs(tmp_path: Path, wiring: Path) -> None:
    file = tmp_path / "items.jsonl"
    with FakeWeb.tree(3, 6, latency=0.2) as web:
        child = start(web.url("/"), tmp_path / "crawl", wiring, "--items", str(file))
        try:
            until(lambda: child.poll() is not None or (file.exists() and file.stat().st_size))
            assert child.poll() is None, "the crawl ended, and no item was written while it ran"
        finally:
            child.terminate()
            child.communicate()
    assert items(file)


def test_an_item_file_is_made_again_by_reprocess(tmp_path: Path, wiring: Path) -> None:
    directory, file = tmp_path / "crawl", tmp_path / "items.jsonl"
    with FakeWeb.tree(1, 3) as web:
        done = start(web.url("/"), directory, wiring, "--items", str(file))
        assert done.wait(timeout=HUNG_AFTER) == 0
        done.communicate()
    before = items(file)
    file.unlink()
    assert main(["reprocess", str(directory)]) == 0
    key = json.dumps
    assert sorted(items(file), key=key) == sorted(before, key=key)


def test_a_file_that_the_crawl_did_not_make_is_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    for name, told in (
        (mine, "exists"),
        (tmp_path / "items.xml", "end in"),
        (tmp_path / "no/items.csv", "directory"),
        (tmp_path / "folder.csv", "is a directory"),
    ):
        assert main(["crawl", "http://127.0.0.1:9/", "-o", str(tmp_path / "c"), "--items", str(name)]) == 2
        assert told in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert not (tmp_path / "c").exists()


def test_a_program_writes_its_items_with_the_fields_of_a_type(tmp_path: Path) -> None:
    @dataclass
    class Leaf:
        title: str
        depth: int

    prices, all_of_them = tmp_path / "leaves.csv", tmp_path / "all.jsonl"
    with FakeWeb.tree(2, 2) as web, own_processors():

        @gossamer.processor("text/html")
        def leaves(document: Any) -> Any:
            yield gossamer.Item("Leaf", document.url, {"title": "=1", "depth": 3, "other": 1})
            yield gossamer.Item("Rest", document.url, None)

        files = [f"Leaf={prices}", str(all_of_them)]
        pages = list(
            gossamer.crawl_sync(
                web.url("/"), delay=0, items=files, item_columns=Leaf, item_formulas="keep", item_key="title"
            )
        )
    assert len(pages) == len(web.expected)
    assert prices.read_bytes() == b"title,depth\r\n=1,3\r\n"
    assert len(items(all_of_them)) == 1 + len(web.expected), "an item without the field of the key is kept"


def test_a_file_goes_on_as_it_was_begun(tmp_path: Path, wiring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, file = tmp_path / "crawl", tmp_path / "items.csv"
    with FakeWeb.tree(1, 2) as web:
        plain = ["crawl", web.url("/"), "--delay", "0", "--quiet", "--wiring", str(wiring), "-o", str(directory)]
        assert main([*plain, "--items", str(file)]) == 0
        assert main(["resume", str(directory), "--quiet", "--items", str(file)]) == 0
        assert main(["resume", str(directory), "--quiet", "--items", str(file), "--item-key", "x"]) == 2
        assert "writes it with another" in capsys.readouterr().err
        assert main([*plain, "--overwrite", "--item-key", "x"]) == 2
        assert "name a file" in capsys.readouterr().err
        assert main([*plain, "--overwrite", "--items", str(file), "--items", f"k={file}"]) == 2
        assert "twice" in capsys.readouterr().err


def test_query_and_export_show_the_fields_of_items_as_columns(
    tmp_path: Path, wiring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "crawl"
    with FakeWeb.tree(1, 2) as web:
        seed = web.url("/")
        assert main(["crawl", seed, "--delay", "0", "--quiet", "--wiring", str(wiring), "-o", str(directory)]) == 0
    with Database(directory) as database:
        [[kind]] = list(database.ask("SELECT DISTINCT kind FROM items"))
        [[found, most]] = list(database.ask(f'SELECT count(*), max(a) FROM item."{kind}"'))
    capsys.readouterr()
    assert (found, most) == (3, 2)
    assert main(["export", str(directory), "--to", "jsonl", "--table", f"item.{kind}"]) == 0
    assert all("a" in json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert main(["export", str(directory), "--to", "csv", "--table", "item.None"]) == 2
    assert "no table" in capsys.readouterr().err
