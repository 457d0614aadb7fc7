"""What follows a crawl has its rows when it ends: index and database, beside it and after kills."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.query.database import Database
from gossamer.search.asking import Search
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")

KILLS = 3


def start(directory: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": os.environ.get("HOME", "/")}
    return subprocess.Popen(
        [sys.executable, "-m", "gossamer", *arguments, "--set", "log.segment_bytes=10000", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


@pytest.mark.long
def test_index_and_database_have_the_rows_of_the_tables_whatever_is_killed(tmp_path: Path) -> None:
    directory, database, chance = tmp_path / "crawl", tmp_path / "my.db", random.Random(3)
    with sqlite3.connect(database) as mine:
        mine.execute("CREATE TABLE links (source TEXT, target TEXT, crawl TEXT)")
        mine.execute("CREATE TABLE docs (address TEXT PRIMARY KEY, status INTEGER)")
    sinks = tmp_path / "sinks.toml"
    sinks.write_text(
        f'[sinks.mine]\nurl = "sqlite:///{database}"\n'
        '[[sinks.mine.tables]]\nfrom = "links"\ninto = "links"\npage = "source"\n'
        'columns = { source = "source", target = "target", crawl = "crawl" }\n'
        '[[sinks.mine.tables]]\nfrom = "pages"\ninto = "docs"\nkey = ["address"]\ngone = "delete"\n'
        'columns = { address = "url", status = "status" }\n',
        encoding="utf-8",
    )
    with FakeWeb.tree(4, 4, latency=0.02) as web:
        options = ["--delay", "0", "--per-host", "4", "--index", "--sinks", str(sinks)]
        arguments = ["crawl", web.url("/"), "-o", str(directory), *options]
        for _ in range(KILLS):
            process = start(directory, *arguments)
            web.wait_for(len(web.requests) + chance.randrange(20, 70))
            # What follows the crawl begins after it and looks once a second: some kills come after it took rows, some before.
            time.sleep(chance.random() / 2)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if (directory / "crawl.toml").exists():
                arguments = ["resume", str(directory)]
        process = start(directory, *arguments)
        _, said = process.communicate(timeout=HUNG_AFTER)
        assert process.returncode == 0, said
    with Database(directory) as tables:
        links = sorted(tables.ask("SELECT source, target FROM links"))
        pages = sorted(tables.ask("SELECT url FROM pages WHERE outcome = 'ok'"))
    with sqlite3.connect(database) as mine:
        assert sorted(mine.execute("SELECT source, target FROM links")) == links, said
        assert sorted(mine.execute("SELECT address FROM docs")) == pages
    assert sorted(hit.url for hit in Search(directory).ask("", most=1_000).hits) == [url for (url,) in pages]


def test_a_database_that_is_away_is_told_and_filled_by_the_next_run_and_keeps_no_other_from_its_rows(
    tmp_path: Path,
) -> None:
    directory, database, sound = tmp_path / "crawl", tmp_path / "my.db", tmp_path / "sound.db"
    sinks = tmp_path / "sinks.toml"
    sinks.write_text(
        "".join(
            f'[sinks.{name}]\nurl = "sqlite:///{file}"\n[[sinks.{name}.tables]]\nfrom = "pages"\ninto = "docs"\n'
            'key = ["address"]\ncolumns = { address = "url" }\n'
            for name, file in (("mine", database), ("sound", sound))
        ),
        encoding="utf-8",
    )
    with sqlite3.connect(sound) as other:
        other.execute("CREATE TABLE docs (address TEXT PRIMARY KEY)")
    with FakeWeb.tree(2, 2) as web:
        process = start(directory, "crawl", web.url("/"), "-o", str(directory), "--delay", "0", "--sinks", str(sinks))
        _, said = process.communicate(timeout=HUNG_AFTER)
        assert process.returncode == 0
        assert b"sink mine, pages" in said and b"no such database" in said and b"sink sound" not in said
        with sqlite3.connect(sound) as other, Database(directory) as tables:
            assert sorted(other.execute("SELECT address FROM docs")) == sorted(tables.ask("SELECT url FROM pages"))
        with sqlite3.connect(database) as mine:
            mine.execute("CREATE TABLE docs (address TEXT PRIMARY KEY)")
        process = start(directory, "resume", str(directory))
        _, said = process.communicate(timeout=HUNG_AFTER)
        assert process.returncode == 0 and b"sink" not in said
    with Database(directory) as tables, sqlite3.connect(database) as mine:
        assert sorted(mine.execute("SELECT address FROM docs")) == sorted(tables.ask("SELECT url FROM pages"))


def test_a_bad_file_of_sinks_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    sinks = tmp_path / "sinks.toml"
    sinks.write_text("[sinks.mine]\n", encoding="utf-8")
    assert main(["crawl", "http://127.0.0.1:9/", "-o", str(tmp_path / "crawl"), "--sinks", str(sinks)]) == 2
    assert not (tmp_path / "crawl").exists()
