"""A page that ends or holds up its reader costs the crawl that page, and no more: named, and never met twice in the same way."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakePage, FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")

#: A crawl whose own code ends the process on one page, as a parser of others can. No other process can run the code.
_PROGRAM = """
import os, sys
import gossamer

@gossamer.processor("text/html")
def deadly(document):
    if document.url.endswith("/killer"):
        os._exit(9)
    return ()

url, directory = sys.argv[1:]
options = {"resume": True} if os.path.isdir(directory) else {"allow_network": ["127.0.0.0/8"], "delay": 0}
for page in gossamer.crawl_sync(url, output=directory, **options):
    pass
"""


def _scoped(count: int) -> str:
    """JSON-LD in which each of many terms has a context."""
    terms = {f"t{i}": {"@id": f"http://x.test/{i}", "@context": {}} for i in range(count)}
    values = {f"t{i}": {"@id": f"http://y.test/{i}"} for i in range(count)}
    return _page({"@context": terms, **values})


def _chained(count: int) -> str:
    """JSON-LD in which each of many terms stands for the one before."""
    return _page({"@context": {f"t{i}": f"t{i - 1}:a" for i in range(count, 0, -1)}, "t5": 1})


def _page(data: object) -> str:
    return f'<title>t</title><a href="/">home</a><script type="application/ld+json">{json.dumps(data)}</script>'


def _rows(directory: Path, question: str, capsys: pytest.CaptureFixture[str]) -> list[Mapping[str, object]]:
    capsys.readouterr()
    assert main(["query", str(directory), question, "-f", "jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_ld_that_freezes_or_ends_its_parser_costs_a_crawl_its_own_triples_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages: dict[str, str | bytes | FakePage] = {
        "/frozen": _scoped(20_000),
        "/large": _scoped(500),
        "/crash": _chained(30_000),
        "/null": _page(None),
        "/good": _page({"@context": "https://schema.org", "name": "N"}),
    }
    pages["/"] = "".join(f"<a href={path}>x</a>" for path in pages)
    with FakeWeb(pages) as web:
        options = ["--rdf", "--delay", "0", "--allow-network", "127.0.0.0/8", "--quiet", "-o", str(tmp_path / "mine")]
        assert main(["crawl", web.url("/"), *options]) == 0
    rows = _rows(tmp_path / "mine", "SELECT url, outcome, coalesce(trouble, '') AS trouble FROM pages", capsys)
    troubles = {str(row["url"]).rpartition("/")[2]: row["trouble"] for row in rows if row["outcome"] == "ok"}
    assert troubles == {
        **dict.fromkeys(("", "large", "null", "good"), ""),
        **dict.fromkeys(("frozen", "crash"), "parse_skipped"),
    }
    rows = _rows(tmp_path / "mine", "SELECT graph, count(*) AS n FROM triples GROUP BY 1", capsys)
    assert {str(row["graph"]).rpartition("/")[2]: row["n"] for row in rows} == {"large": 500, "good": 1}


def test_a_page_that_ends_the_process_is_set_aside_after_the_second_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, directory = tmp_path / "own.py", tmp_path / "mine"
    program.write_text(_PROGRAM)
    pages: dict[str, str | bytes | FakePage] = {f"/{number}": "<p>x" for number in range(5)}
    pages["/killer"] = "<title>t</title><a href=/behind>x</a>"
    pages["/"] = "".join(f"<a href={path}>x</a>" for path in pages)
    with FakeWeb(pages) as web:

        def run() -> int:
            command = [sys.executable, str(program), web.url("/"), str(directory)]
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": str(tmp_path)}
            return subprocess.run(command, cwd=tmp_path, env=environment, check=False).returncode

        assert [run(), run()] == [9, 9]
        assert run() == 0
    rows = _rows(directory, "SELECT url, coalesce(trouble, '') AS trouble FROM pages WHERE outcome = 'ok'", capsys)
    troubles = {str(row["url"]).rpartition("/")[2]: row["trouble"] for row in rows}
    assert troubles == {"": "", **{str(number): "" for number in range(5)}, "killer": "reader_killed"}
