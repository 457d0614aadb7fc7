"""PageRank of a crawl: by the definition, of every URL that is linked, and written so that a later crawl can use it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.cli.main import main
from gossamer.engine.errors import SettingError
from gossamer.frontier.contract import TaskStanding
from gossamer.frontier.order import WeightedPrioritizer, WeightSheet
from gossamer.query.database import Database
from gossamer.query.ranking import DAMPING, pagerank, rank_crawl
from gossamer.values.task import Task
from gossamer.values.visit import Link, Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]


def numbers(*values: int) -> Any:
    return np.array(values, dtype=np.int32)


def test_ranks_are_those_of_the_equations() -> None:
    """1 and 2 link to each other, 2 and 3 to 4, 4 to nothing."""
    sources, targets, count = numbers(0, 1, 1, 2), numbers(1, 0, 3, 3), 4
    ranks, rounds = pagerank(sources, targets, count)
    matrix = np.zeros((count, count))
    for source, target in zip(sources, targets, strict=True):
        matrix[target, source] = 1 / np.count_nonzero(sources == source)
    matrix[:, 3] = 1 / count
    exact = np.linalg.solve(np.eye(count) - DAMPING * matrix, np.full(count, (1 - DAMPING) / count))
    assert np.allclose(ranks, exact, atol=1e-5)
    assert ranks.sum() == pytest.approx(1)
    assert rounds > 1


def test_a_graph_of_nothing_has_no_ranks() -> None:
    ranks, rounds = pagerank(numbers(), numbers(), 0)
    assert len(ranks) == 0 and rounds == 0


@pytest.fixture
def crawl(kept: Open, page: Make) -> Path:
    stores = kept()
    popular, shunned, picture = (
        Link("http://b.test/"),
        Link("http://c.test/", nofollow=True),
        Link("http://d.test/x.png", "img src"),
    )
    for number in (1, 2, 3):
        one = page(number, id=f"v{number}", links=(popular, shunned, picture, Link(f"http://a.test/{number}")))
        stores.commit(one)
    directory: Path = stores.directory
    return directory


def test_what_was_linked_and_never_fetched_has_a_rank(crawl: Path) -> None:
    assert rank_crawl(crawl)[:2] == (4, 3)
    with Database(crawl) as database:
        rows = list(
            database.ask("SELECT url, host, links_in, links_out, importance FROM ranks ORDER BY rank DESC LIMIT 1")
        )
        assert rows == [("http://b.test/", "b.test", 3, 0, 1.0)]
        assert list(database.ask("SELECT host, urls FROM host_ranks ORDER BY rank DESC")) == [
            ("b.test", 1),
            ("a.test", 3),
        ]
        [(total,)] = database.ask("SELECT sum(rank) FROM ranks")
        assert total == pytest.approx(1)


def test_ranking_again_replaces_the_tables(crawl: Path) -> None:
    rank_crawl(crawl)
    rank_crawl(crawl)
    with Database(crawl) as database:
        assert list(database.ask("SELECT count(*) FROM ranks")) == [(4,)]


def test_a_later_crawl_takes_what_is_important_first(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = crawl / "ranks.txt"
    assert main(["rank", str(crawl), "--importance", str(file)]) == 0
    assert "4 URLs, 3 links" in capsys.readouterr().out
    prioritizer = WeightedPrioritizer(WeightSheet(depth=1.0, importance=str(file)))
    tasks = [
        Task("http://a.test/1", "a.test", 3),
        Task("http://b.test/", "b.test", 3),
        Task("http://x.test/", "x.test", 3),
    ]
    levels = prioritizer.levels(tasks, [TaskStanding()] * 3)
    assert levels[1] < levels[2]


@pytest.mark.parametrize("line", ["high a.test", "-2 a.test", "nan a.test", "0.5", "0.5 a b", "0.5 http://a.test/*/b*"])
def test_a_file_of_importance_that_says_something_else_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "ranks.txt"
    file.write_text(f"# hosts\n\n{line}\n", encoding="utf-8")
    with pytest.raises(SettingError, match="line 3"):
        WeightedPrioritizer(WeightSheet(importance=str(file)))


def test_a_file_of_importance_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="No such file"):
        WeightedPrioritizer(WeightSheet(importance=str(tmp_path / "none.txt")))


def test_a_site_is_as_important_as_other_sites_say_however_many_pages_it_has(kept: Open, page: Make) -> None:
    stores = kept()
    big = [f"http://big.test/{n}" for n in range(20)]
    for number, url in enumerate(big, 1):
        links = tuple(map(Link, big)) + ((Link("http://small.test/"),) if number == 1 else ())
        stores.commit(page(number, id=f"b{number}", task=Task(url, "big.test"), links=links))
    for number in range(30, 34):
        other = Task(f"http://o{number}.test/", f"o{number}.test")
        stores.commit(page(number, id=f"o{number}", task=other, links=(Link("http://small.test/"),)))
    rank_crawl(stores.directory)
    with Database(stores.directory) as database:
        hosts = list(database.ask("SELECT host, hosts_in FROM host_ranks ORDER BY importance DESC"))
        assert hosts[0] == ("small.test", 5)
        assert list(database.ask("SELECT host FROM host_ranks ORDER BY rank DESC LIMIT 1")) == [("big.test",)]
        [(total,)] = database.ask("SELECT sum(site_rank) FROM host_ranks")
        assert total == pytest.approx(1)
