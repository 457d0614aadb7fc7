"""Which documents a dataset has, and how they are divided among tasks: what needs no Ray."""

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.query.database import Database
from gossamer.ray.dataset import DocumentsTask, documents, tasks
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.errors import UsageError


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ray") / "crawl"
    pages = {f"/{number}": f"<title>{number}</title><p>Number {number}." for number in range(12)}
    links = "".join(f"<a href={url}>x</a>" for url in (*pages, "/twin", "/gone"))
    with FakeWeb({**pages, "/twin": pages["/3"], "/": links}) as web:
        assert main(["crawl", web.url("/"), "--delay", "0", "-o", str(folder), "--quiet"]) == 0
    return folder


def divided(crawl: Path, most: int, *columns: str) -> list[DocumentsTask]:
    with Database(crawl) as database:
        return list(tasks(database, crawl, columns, most))


def test_a_task_reads_so_many_bytes_of_the_archive_in_order_and_the_tasks_read_all_documents_once(crawl: Path) -> None:
    most = 3_000
    found = divided(crawl, most, "url", "body")
    rows = [row for task in found for row in task.rows]
    assert len({row["url"] for row in rows}) == len(rows) == 14
    places = [(row["warc_file"], row["warc_offset"]) for row in rows]
    assert places == sorted(places)
    assert len(found) > 3
    for task in found:
        assert task.bytes - max(task.rows[-1]["warc_length"], 1_000) < most
        assert task.files == {row["warc_file"]: str(crawl / row["warc_file"]) for row in task.rows}
    assert all(task.bytes >= most for task in found[:-1])


def test_a_document_that_repeats_another_knows_where_the_first_is(crawl: Path) -> None:
    [whole] = divided(crawl, 1 << 30, "body")
    rows = {row["url"].rpartition("/")[2]: row for row in whole.rows}
    first = rows["3"]
    assert rows["twin"]["place"] == {
        "file": first["warc_file"],
        "offset": first["warc_offset"],
        "length": first["warc_length"],
    }
    assert rows["4"]["place"] is None


def test_columns_of_the_tables_bring_no_places_of_the_archive(crawl: Path) -> None:
    [whole] = divided(crawl, 1 << 30, "url", "items")
    assert whole.files == {}
    assert not {"place", "warc_offset", "digest"} & whole.rows[0].keys()


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (("url", "txt"), "columns='txt': documents have no such column; did you mean 'text'?"),
        ((), "columns=(): name some of url, time, type"),
        ("url", "columns='url': name some of url, time, type"),
    ],
)
def test_columns_that_are_none_are_refused(crawl: Path, columns: "tuple[str, ...] | str", told: str) -> None:
    with pytest.raises(UsageError) as error:
        documents(crawl, columns)
    assert str(error.value).startswith(told)


def test_without_ray_the_error_names_the_command_that_installs_it(crawl: Path) -> None:
    # As where Ray is not installed, whether it is or not.
    program = f"import sys; sys.modules['ray'] = None\nimport gossamer.ray\ngossamer.ray.documents({str(crawl)!r})"
    told = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    [line] = [line for line in told.stderr.splitlines() if "UsageError" in line]
    assert "gossamer.ray.documents() needs Ray Data; install it: " in line
    assert "'ray[data]>=2.52'" in line
