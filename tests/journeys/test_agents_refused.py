"""Several agents and bad input: one clear line, the exit status of the interface, and nothing half-changed."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.journeys.test_agents import crawled, options_for, seed_of, web_of_hosts

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.cli.main import main
from gossamer.storage.ledger import schema
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.store import Batch, RocksStore


@pytest.fixture(scope="module")
def ended_crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of two agents that has come to its limit."""
    directory = tmp_path_factory.mktemp("agents") / "crawl"
    with web_of_hosts(hosts=4, pages=3) as web:
        options = options_for(web, directory, agents=2, max_pages=6)
        asyncio.run(crawled(SupervisedCrawl([seed_of(web)], options, tables=False)))
    return directory


def told_of(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that was told."""
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("agents", "why"),
    [("0", "at least 1, at most 64"), ("65", "keeps a connection to each of the others"), ("x", "number")],
)
def test_a_number_of_agents_that_cannot_be_is_refused_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], agents: str, why: str
) -> None:
    assert main(["crawl", "http://a.test/", "--agents", agents, "-o", str(tmp_path / "c")]) == 2
    assert why in told_of(capsys)
    assert not (tmp_path / "c").exists()


@contextmanager
def second_ledger(directory: Path) -> Iterator[Batch]:
    """Write into the ledger of the second agent."""
    path = RocksLedger(LedgerSheet(directory=str(directory), agent="agent-01")).places.ledger
    store = RocksStore(path, LedgerSheet(cache=1 << 20, buffers=1 << 20, log=1 << 20))
    batch = store.batch()
    yield batch
    store.write(batch)
    store.close()


def newer(directory: Path) -> None:
    """A version that nobody knows yet."""
    with second_ledger(directory) as batch:
        schema.stamp(batch, schema.VERSION + 1)


def with_other_secret(directory: Path) -> None:
    with second_ledger(directory) as batch:
        batch.put("meta", b"secret", b"12345678")


@pytest.mark.parametrize(
    ("spoil", "more", "why"),
    [(newer, ["--max-pages", "9"], "newer"), (with_other_secret, ["--agents", "3"], "which no other agent can read")],
)
def test_an_agent_whose_ledger_does_not_fit_stops_the_crawl_before_it_begins(
    ended_crawl: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], None],
    more: list[str],
    why: str,
) -> None:
    directory = tmp_path / "crawl"
    shutil.copytree(ended_crawl, directory)
    spoil(directory)
    before = {name: (directory / name).read_bytes() for name in ("crawl.toml", "state/agents.json", "state/ended.json")}
    assert main(["resume", str(directory), *more]) == 5
    assert why in told_of(capsys)
    assert {name: (directory / name).read_bytes() for name in before} == before
    assert sorted(path.name for path in (directory / "state").glob("agent-*")) == ["agent-00", "agent-01"]
