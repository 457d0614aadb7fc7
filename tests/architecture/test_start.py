"""What a process imports before it does anything: the half of what a small crawl costs. Each list is what it does without."""

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.crawls.catalog import catalog, shipped_names
from gossamer.engine.component import Component
from gossamer.engine.connector import without_codec
from gossamer.engine.ends import declared
from gossamer.engine.unit import Provider

#: Parts and libraries that a plain crawl does not use: it makes tables of few rows itself, so those of tables are not among them.
NOT_OF_A_PLAIN_CRAWL = {
    "brotli", "difflib", "duckdb", "email", "http", "importlib.metadata", "importlib.resources", "multiprocessing",
    "numpy", "pyarrow", "ray", "resiliparse", "rich", "sqlite3", "tantivy", "xml", "zipfile",
    "gossamer.api", "gossamer.crawls.control.steering", "gossamer.crawls.control.standing", "gossamer.crawls.control.at_work",
    "gossamer.analysis.reprocess",
    "gossamer.analysis.why", "gossamer.bench", "gossamer.engine.remote.connector", "gossamer.engine.remote.links",
    "gossamer.query.database", "gossamer.query.feeds",
    "gossamer.query.following", "gossamer.search.index", "gossamer.query.item_files", "gossamer.simweb",
    "gossamer.parsing.statistics", "gossamer.labs.diverse", "gossamer.labs.trie", "gossamer.storage.seen.sieve",
    "gossamer.testing", "gossamer.spiders.running", "gossamer.mobile.crawler",
    "gossamer.ray", "gossamer.recrawl.changes", "gossamer.crawls.old_wirings",
}  # fmt: skip

#: What the process that makes tables has no use for: it begins when the crawl has ended, and somebody waits for it.
NOT_OF_THE_CONVERTER = {
    "asyncio", "click", "duckdb", "numpy", "pycurl", "rocksdict", "selectolax", "uvloop",
    "gossamer.cli", "gossamer.crawls", "gossamer.engine.component", "gossamer.fetcher",
    "gossamer.frontier", "gossamer.query.database",
}  # fmt: skip

#: What a parser process has no use for: a crawl starts one when it meets the first page that its parser could choke on.
NOT_OF_A_PARSER = {
    "asyncio", "click", "numpy", "pycurl", "rocksdict", "ssl", "uvloop",
    "gossamer.cli", "gossamer.crawls", "gossamer.fetcher.http", "gossamer.query", "gossamer.storage.ledger",
}  # fmt: skip

#: What no command needs to tell its options, or that it does not understand.
NOT_OF_HELP = {
    "asyncio", "pycurl",
    "gossamer.crawls.crawl", "gossamer.fetcher.fetch_stage", "gossamer.frontier.frontier", "gossamer.query.database",
    "gossamer.storage.ledger",
}  # fmt: skip

#: What the command as a whole needs as little.
NOT_OF_A_LIST = NOT_OF_HELP | {"msgspec", "gossamer.engine.component", "gossamer.values"}


def imported(program: str, *arguments: str) -> set[str]:
    """Names of what a process has imported when it has run the program to its end."""
    tell = "import sys\ntry:\n  {}\nfinally:\n  print('\\nimported', *sys.modules, file=sys.stderr)"
    line = [sys.executable, "-c", tell.format(program), *arguments]
    done = subprocess.run(line, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return set(done.stderr.rpartition("\nimported ")[2].split())


COMMAND = "from gossamer.cli.main import main; main(sys.argv[1:])"


def test_a_plain_crawl_imports_only_what_it_uses(tmp_path: Path) -> None:
    page = tmp_path / "site" / "index.html"
    page.parent.mkdir()
    page.write_text("<title>A page</title><a href='other.html'>Another</a>", encoding="utf-8")
    loaded = imported(COMMAND, "crawl", page.as_uri(), "--quiet", "--json", "-o", str(tmp_path / "crawl"))
    assert list((tmp_path / "crawl" / "tables" / "pages").glob("*.parquet")), "it was no crawl"
    assert "gossamer.parsing.html" in loaded
    assert loaded & NOT_OF_A_PLAIN_CRAWL == set()


def test_the_converter_imports_neither_crawl_nor_data_frames(tmp_path: Path) -> None:
    program = "import gossamer.engine.worker; from gossamer.query.convert import make_tables, TablesOrder; "
    loaded = imported(f"{program}make_tables(TablesOrder(sys.argv[1], True), None)", str(tmp_path))
    assert "_duckdb" in loaded
    assert loaded & NOT_OF_THE_CONVERTER == set()


def test_a_parser_imports_no_crawl() -> None:
    loaded = imported("import gossamer.parsing.findings, gossamer.parsing.html, gossamer.parsing.other_links")
    assert loaded & NOT_OF_A_PARSER == set()


@pytest.mark.parametrize(
    ("line", "without"),
    [
        ("--version", NOT_OF_A_LIST),
        ("--help", NOT_OF_A_LIST),
        ("crawl --help", NOT_OF_HELP),
        ("crawl --nonsense", NOT_OF_HELP),
        ("resume", NOT_OF_HELP),
        ("topology --help", NOT_OF_HELP),
        ("query --help", NOT_OF_HELP),
        ("status --help", NOT_OF_HELP),
        ("pause --help", NOT_OF_HELP),
    ],
)
def test_who_asks_for_help_waits_for_no_import(line: str, without: set[str]) -> None:
    loaded = imported(COMMAND, *line.split())
    assert "click" in loaded
    assert loaded & without == set()


#: Modules that the help of a command may import. Click and the interpreter have 139. The tables of options, and the names of what
#: commands take, have the rest.
MOST_OF_HELP = 230

#: Counts the modules of each command's help in a child that has only the list of commands.
COUNT = """
import contextlib, io, os
from gossamer.cli.main import all_commands, main
for name in ("", *all_commands()):
    if not os.fork():
        with contextlib.redirect_stdout(io.StringIO()):
            main([*name.split(), "--help"])
        os.write(1, f"{name or 'gossamer'} {len(sys.modules)}\\n".encode())
        os._exit(0)
    os.wait()
"""


def test_the_help_of_no_command_imports_its_work() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", f"import sys{COUNT}"], capture_output=True, text=True)
    counts = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    assert {"gossamer", "crawl", "robots", "bench"} <= set(counts), done.stderr
    assert {name: count for name, count in counts.items() if count > MOST_OF_HELP} == {}


@pytest.mark.parametrize("name", shipped_names("components"))
def test_every_component_of_the_catalog_is_where_it_says(name: str) -> None:
    assert issubclass(catalog().component(name), Component)


@pytest.mark.parametrize("name", shipped_names("components"))
def test_every_item_that_ships_could_cross_a_process(name: str) -> None:
    """A start looks through items of other packages alone."""
    ends = declared(catalog().component(name))
    assert [kind for kind in (*ends.inputs.values(), *ends.outputs.values()) if without_codec(kind)] == []


@pytest.mark.parametrize("name", shipped_names("providers"))
def test_every_provider_of_the_catalog_is_where_it_says(name: str) -> None:
    assert issubclass(catalog().provider(name), Provider)


def test_names_are_listed_without_an_import() -> None:
    program = "from gossamer.crawls.catalog import catalog; catalog().names('providers'); catalog().names('components')"
    loaded = imported(program)
    assert not [
        name for name in loaded if name.startswith(("gossamer.fetcher", "gossamer.frontier", "gossamer.storage"))
    ]
