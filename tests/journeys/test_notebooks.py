"""Notebooks: `crawl` and `crawl_sync` in a kernel, whose event loop runs already, and cells that are run again."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.testing.fakeweb import FakeWeb

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None,
    reason="nbclient and ipykernel are not installed: notebooks are not tried",
)

SHOP = {
    "/": '<h1>Shop</h1><a class=p href="/b1">1</a><a class=p href="/b2">2</a>',
    "/b1": "<title>Book 1</title><h1>Book 1</h1>",
    "/b2": "<title>Book 2</title><h1>Book 2</h1>",
}

#: Seconds for one cell, on a machine that has much else to do.
PATIENCE = 120

ASYNC = """
import gossamer
found = []
async for page in gossamer.crawl({seed!r}, delay=0):
    found.append(page.title)
print(sorted(found))
"""

SYNC = """
print(sorted(page.url.rpartition("/")[2] for page in gossamer.crawl_sync({seed!r}, delay=0)))
"""

PROCESSOR = """
@gossamer.processor("text/html")
def heads(document):
    for node in document.css("h1"):
        yield gossamer.Item(kind="heads", url=document.url, value={{"head": node.text()}})

print(sorted(item.value["head"] for page in gossamer.crawl_sync({seed!r}, delay=0) for item in page.items))
"""

SPIDER = """
spider = gossamer.Spider({seed!r}, delay=0, output="kept", overwrite=True, items="books.jsonl")

@spider.page()
async def listing(page):
    yield page.follow_all(".p", label="book")

@spider.page("book")
def book(page):
    yield {{"title": page.text("h1")}}

summary = spider.run()
print(summary.state, summary.pages)
"""

LATE = """
async for page in gossamer.crawl({seed!r}, delay=0):
    break
print("left")
"""

WRONG = """
for page in gossamer.crawl_sync({seed!r} + "absent-host-that-is-no-url", depht=1):
    pass
"""


class Notebook:
    """Cells that are run one after the other in one kernel."""

    def __init__(self, folder: Path) -> None:
        import nbclient
        import nbformat

        self.folder = folder
        self._nbformat = nbformat
        self.document: Any = nbformat.v4.new_notebook()
        self.client = nbclient.NotebookClient(
            self.document, timeout=PATIENCE, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        self._cells = 0

    def run(self, source: str) -> str:
        """What a cell prints; raises CellExecutionError where it raises."""
        cell = self._nbformat.v4.new_code_cell(source)
        self.document.cells.append(cell)
        self.client.execute_cell(cell, self._cells)
        self._cells += 1
        outputs = cell["outputs"]
        assert not [one for one in outputs if one.get("name") == "stderr"], outputs
        return "".join(one["text"] for one in outputs if one.get("name") == "stdout")


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    made = Notebook(tmp_path_factory.mktemp("notebook"))
    with made.client.setup_kernel():
        yield made


def test_crawls_run_in_a_notebook_and_a_cell_that_is_run_again_doubles_nothing(
    notebook: Notebook,
) -> None:
    with FakeWeb(SHOP) as web:
        seed = web.url("/")
        assert notebook.run(ASYNC.format(seed=seed)) == "['', 'Book 1', 'Book 2']\n"
        assert notebook.run(SYNC.format(seed=seed)) == "['', 'b1', 'b2']\n"
        for _ in range(2):
            assert notebook.run(SPIDER.format(seed=seed)) == "finished 3\n"
            assert len((notebook.folder / "books.jsonl").read_text().splitlines()) == 2
        for _ in range(2):
            assert notebook.run(PROCESSOR.format(seed=seed)) == "['Book 1', 'Book 2', 'Shop']\n"
        assert notebook.run(LATE.format(seed=seed)) == "left\n"
        assert notebook.run(SYNC.format(seed=seed)) == "['', 'b1', 'b2']\n"


def test_a_wrong_use_in_a_notebook_is_one_error_that_names_it(notebook: Notebook) -> None:
    from nbclient.exceptions import CellExecutionError

    notebook.run("import gossamer")
    with pytest.raises(CellExecutionError) as caught:
        notebook.run(WRONG.format(seed="http://a.test/"))
    assert "did you mean 'depth'" in str(caught.value)
    assert "During handling of the above exception" not in str(caught.value)
