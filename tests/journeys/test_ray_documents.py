"""The documents of a crawl as a Ray dataset: its rows are those that the Python interface gave while it crawled.

Ray lives in an environment of its own: `./gossamer dev ray` makes it and runs this.
"""

import base64
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from tests.journeys.test_words import pdf
from tests.processors import own_processors
from tests.ray_node import ray_environment, ray_node, ray_python
from tests.s3 import BUCKET, s3_server, variables

import gossamer
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb

DOCS = Path(__file__).parents[2] / "docs"

#: A program of a user: a line of JSON for each dataset that is asked for, with its rows or the error.
PROGRAM = """
import base64, json, sys
import ray
import gossamer.ray

def plain(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else value

ray.init(log_to_driver=False)
for name, place, columns, size in json.loads(sys.stdin.read()):
    try:
        dataset = gossamer.ray.documents(place, columns, task_bytes=size)
        told = [{key: plain(value) for key, value in row.items()} for row in dataset.take_all()]
    except Exception as error:
        told = str(error)
    print(json.dumps([name, told]))
"""

PROSE = (
    "The committee has decided that the old bridge over the river will be replaced by a new one in the coming year. "
)

WHOLE = 128 << 20
ALL = ("url", "time", "type", "status", "body", "text", "markdown", "items", "error")


def site() -> dict[str, str | FakePage]:
    text = f"<p>{PROSE * 3}"
    pages: dict[str, str | FakePage] = {
        f"/{number}": f"<title>{number}</title><h1>Page {number}</h1>{text}<p>This is number {number}."
        for number in range(20)
    }
    others = ("/again", "/paper", "/gone", "/image", "/greek", "/quiet", "/note")
    return {
        **pages,
        "/": f"<title>Home</title><h1>One</h1><h1>Two</h1>{text}"
        + "".join(f"<a href='{url}'>x</a>" for url in (*pages, *others)),
        "/again": str(pages["/7"]),
        "/greek": FakePage(
            f"<title>ή</title><p>{'ελληνικά ' * 50}".encode("iso-8859-7"), type="text/html; charset=iso-8859-7"
        ),
        "/image": FakePage(b"\x89PNG\r\n\x1a\n" + bytes(200), type="image/png"),
        "/note": FakePage("plain text", type="text/plain"),
        "/paper": FakePage(pdf("Bridges of wood", "http://127.0.0.1:1/x"), type="application/pdf"),
        "/quiet": f"<meta name=robots content=noarchive><title>Quiet</title>{text}",
    }


class Asked(NamedTuple):
    pages: dict[str, dict[str, Any]]
    """What the Python interface gave while it crawled."""
    rows: dict[str, Any]
    """What datasets have, and what programs told that were refused one."""
    folder: Path
    said: str
    """By the program of the manual."""


def crawled(url: str, **options: Any) -> dict[str, dict[str, Any]]:
    found = {}
    for page in gossamer.crawl_sync(url, yields="documents", delay=0, **options):
        is_html = page.mime == "text/html"
        found[page.url] = {
            "url": page.url,
            "type": page.mime,
            "status": page.status,
            "body": base64.b64encode(page.content).decode(),
            "text": page.text() if is_html else None,
            "markdown": page.document.markdown if is_html else None,
            "items": [[item.kind, item.value] for item in page.items],
        }
    return found


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    python = ray_python()
    with (
        tempfile.TemporaryDirectory(prefix="ray-") as name,
        FakeWeb(site()) as web,
        s3_server() as s3,
        own_processors(),
        pytest.MonkeyPatch.context() as patch,
    ):
        folder = Path(name)
        cloud, disk = f"s3://{BUCKET}/crawl", f"folder:{folder / 'kept'}"
        for variable, value in {**variables(s3), "XDG_CACHE_HOME": str(folder / "cache")}.items():
            patch.setenv(variable, value)

        @gossamer.processor("text/html")
        def headings(document: gossamer.Document) -> Iterator[gossamer.Item]:
            for node in document.css("h1"):
                yield gossamer.Item("heading", document.url, {"text": node.text()})

        pages = crawled(web.url("/"), output=str(folder / "mine"), store=cloud)
        crawled(web.url("/"), output=str(folder / "second"), store=disk)
        shutil.copytree(folder / "mine", folder / "no archive")
        shutil.rmtree(folder / "no archive" / "warc")
        questions = [
            ("folder", "mine", ALL, WHOLE),
            ("many tasks", "mine", ALL, 10_000),
            ("cloud", cloud, ALL, 10_000),
            ("disk", disk, ALL, WHOLE),
            ("tables", "no archive", ("status", "url"), WHOLE),
            ("elsewhere", "no archive", ("url", "body"), WHOLE),
        ]
        # Workers of Ray have the environment in which the node began.
        with ray_node(folder / "r", ray_environment()) as address:
            environment = {**ray_environment(), "RAY_ADDRESS": address}

            def run(program: str, text: str = "") -> str:
                told = subprocess.run(
                    [python, "-P", "-c", program],
                    input=text,
                    capture_output=True,
                    text=True,
                    timeout=HUNG_AFTER,
                    check=False,
                    cwd=folder,
                    env=environment,
                )
                assert told.returncode == 0, told.stderr
                return told.stdout

            rows = dict(map(json.loads, run(PROGRAM, json.dumps(questions)).splitlines()))
            [example] = re.findall(r"```python\n(.*?)```", (DOCS / "ray.md").read_text("utf-8"), re.DOTALL)
            said = run(example)
        yield Asked(pages, rows, folder, said)


@pytest.mark.parametrize("name", ["folder", "many tasks", "cloud", "disk"])
def test_a_dataset_has_the_documents_that_the_python_interface_gave(asked: Asked, name: str) -> None:
    rows = {row["url"]: row for row in asked.rows[name]}
    assert len(rows) == len(asked.rows[name]) == len(asked.pages) > 20
    for url, page in asked.pages.items():
        row = {**rows[url], "items": [[item["kind"], json.loads(item["data"])] for item in rows[url]["items"]]}
        kept_out = ("body", "text", "markdown") if url.endswith("/quiet") else ()
        words = () if page["type"] == "text/html" else ("text", "markdown")  # the next test has those
        assert {key: row[key] for key in page if key not in (*kept_out, *words)} == {
            key: value for key, value in page.items() if key not in (*kept_out, *words)
        }
        assert all(row[key] is None for key in kept_out)
        assert row["error"] == ("the body was kept out of the archive" if kept_out else "")


def test_words_of_plain_text_and_pdf_are_there_and_other_types_have_none(asked: Asked) -> None:
    rows = {row["url"].rpartition("/")[2]: row for row in asked.rows["folder"]}
    assert (rows["note"]["text"], rows["note"]["markdown"]) == ("plain text", "plain text")
    assert "Bridges of wood" in rows["paper"]["text"]
    assert (rows["image"]["text"], rows["image"]["markdown"], rows["image"]["error"]) == (None, None, "")


def test_a_document_that_came_again_has_the_body_of_the_first(asked: Asked) -> None:
    bodies = {row["url"].rpartition("/")[2]: row["body"] for row in asked.rows["cloud"]}
    assert bodies["again"] == bodies["7"] != bodies["8"]


def test_columns_of_the_tables_are_read_without_the_archive(asked: Asked) -> None:
    assert [list(row) for row in asked.rows["tables"]] == [["status", "url"]] * len(asked.pages)
    assert {row["url"] for row in asked.rows["tables"]} == asked.pages.keys()


def test_a_machine_that_does_not_reach_the_archive_says_so(asked: Asked) -> None:
    assert "is not on this machine; put a crawl that several machines read in a store" in asked.rows["elsewhere"]


def test_the_program_of_the_manual_filters_and_writes_parquet(asked: Asked) -> None:
    texts = duckdb.connect().execute(f"select url, text from '{asked.folder}/texts/*.parquet'").fetchall()
    assert {url for url, _ in texts} == {
        url for url, page in asked.pages.items() if "river" in (page["text"] or "") and not url.endswith("/quiet")
    }
    assert len(texts) > 20
    assert asked.said == f"{len(texts)} pages\n"
