"""A crawl directory whose rows and records are known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.model.visit import Item, Link, Visit
from gossamer.stores.tablelog import TableLog, TableLogSheet
from gossamer.stores.warc import WarcArchive, WarcSheet
from gossamer.testing.storing import visit


class Kept:
    """Stores of one agent, and what a crawl does with them."""

    def __init__(self, directory: Path, agent: str = "agent-00", **values: Any) -> None:
        self.directory = directory
        sheet = {"directory": str(directory), "agent": agent, "tables": ("pages", "links", "items"), **values}
        self.rows = TableLog(msgspec.convert(sheet, TableLogSheet))
        self.archive = WarcArchive(WarcSheet(directory=str(directory), agent=agent))
        (directory / "crawl.toml").touch()

    def commit(self, *visits: Visit) -> None:
        """One group."""
        self.rows.append(visits, self.archive.append(visits))


def make_page(number: int, body: bytes = b"", **changes: Any) -> Visit:
    """A page with two links and an item."""
    url = f"http://a.test/{number}"
    one = visit(url, body or f"<p>page {number}".encode())
    links = (Link(f"{url}/x"), Link(f"{url}/y", "img src", "why", True))
    started = msgspec.structs.replace(one.response, started=1_700_000_000.0 + number)
    changes = {"links": links, "items": (Item("n", url, {"n": number}),), "response": started, **changes}
    return msgspec.structs.replace(one, **changes)


@pytest.fixture
def kept(tmp_path: Path) -> Callable[..., Kept]:
    """Open the stores of a crawl directory, under a name that SQL and wildcards would read wrongly."""
    directory = tmp_path / "it's [a] *crawl?"
    directory.mkdir(exist_ok=True)
    return lambda agent="agent-00", **values: Kept(directory, agent, **values)


@pytest.fixture
def page() -> Callable[..., Visit]:
    """Makes the page of a number."""
    return make_page
