"""Every prioritizer and traversal that ships keeps the promises of its contract, and its own."""

from collections.abc import Callable

import pytest

from gossamer.engine.errors import SettingError
from gossamer.frontier.contract import LEVELS, TaskStanding, Traversal
from gossamer.frontier.order import (
    BestFirst,
    BreadthFirst,
    DepthFirst,
    HostBreadthFirst,
    RandomWalk,
    WeightedPrioritizer,
    WeightSheet,
)
from gossamer.testing import check_prioritizer, check_traversal
from gossamer.values.task import Task


def task(url: str = "http://a.test/", depth: int = 0) -> Task:
    return Task(url=url, host=url.split("/")[2], depth=depth)


@pytest.mark.parametrize("make", [BreadthFirst, DepthFirst, HostBreadthFirst, BestFirst, RandomWalk])
def test_a_traversal_keeps_its_promises(make: Callable[[], Traversal]) -> None:
    check_traversal(make)


@pytest.mark.parametrize(
    "sheet",
    [
        WeightSheet(),
        WeightSheet(depth=0.0, site=-5.0),
        WeightSheet(rules=("2=/dir/", "-3=a.test")),
        WeightSheet(sites=("0.9=a.test", "0.1=b.test")),
    ],
)
def test_a_prioritizer_keeps_its_promises(sheet: WeightSheet) -> None:
    check_prioritizer(WeightedPrioritizer(sheet))


def test_near_and_important_is_more_urgent() -> None:
    levels = WeightedPrioritizer().levels(
        [task(depth=depth) for depth in (1, 3, 3, 30)],
        [TaskStanding(), TaskStanding(), TaskStanding(site=1.0), TaskStanding()],
    )
    assert list(levels) == [1, 3, 2, LEVELS - 1]


def test_the_users_rules_raise_and_lower_urgency() -> None:
    prioritizer = WeightedPrioritizer(WeightSheet(rules=("2=/news/", "-3=/archive/")))
    urls = ("http://a.test/", "http://a.test/news/", "http://a.test/archive/", "http://a.test/archive/news/")
    assert list(prioritizer.levels([task(url, depth=3) for url in urls], [TaskStanding()] * 4)) == [3, 1, 6, 4]


@pytest.mark.parametrize("rule", ["news", "x=news", "2=", "2=(", "nan=x", "inf=x"])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(SettingError, match="write LEVELS=RE2"):
        WeightedPrioritizer(WeightSheet(rules=(rule,)))


def test_the_users_sites_raise_and_lower_urgency_by_host_before_domain() -> None:
    sheet = WeightSheet(sites=("1=example.org", "0=old.Example.org", "0=b.test"))
    urls = ("http://a.test/", "http://example.org/", "http://www.example.org/", "http://old.example.org/")
    tasks = [task(url, depth=3) for url in (*urls, "http://b.test/")]
    assert list(WeightedPrioritizer(sheet).levels(tasks, [TaskStanding()] * 5)) == [3, 2, 2, 4, 4]


@pytest.mark.parametrize("site", ["example.org", "2=example.org", "nan=example.org", "0.5=", "x=a.test", "0.5=a b"])
def test_a_site_that_is_none_is_refused(site: str) -> None:
    with pytest.raises(SettingError, match="write IMPORTANCE=HOST"):
        WeightedPrioritizer(WeightSheet(sites=(site,)))


def test_host_breadth_stays_on_the_host_and_takes_every_seed() -> None:
    tasks = [task("http://a.test/1"), task("http://b.test/2"), task("http://a.test/3")]
    assert [one.url for one in HostBreadthFirst().follow(tasks, task())] == ["http://a.test/1", "http://a.test/3"]
    assert HostBreadthFirst().follow(tasks, None) == tasks


def test_a_random_walk_takes_one_link_and_all_about_as_often() -> None:
    walk = RandomWalk()
    tasks = [task(f"http://a.test/{number}") for number in range(4)]
    taken = [walk.follow(tasks, task()) for _ in range(4000)]
    assert all(len(one) == 1 for one in taken)
    for one in tasks:
        assert taken.count([one]) == pytest.approx(1000, rel=0.15)


def test_depth_first_takes_the_deepest_and_prefers_deep_hosts() -> None:
    walk = DepthFirst()
    assert walk.level(task(depth=5), 0) < walk.level(task(depth=1), 0)
    assert walk.host_level(task(depth=5), 0) < walk.host_level(task(depth=1), 0)


def test_breadth_first_takes_lesser_depths_first_however_late_they_come() -> None:
    order = BreadthFirst()
    assert order.level(task(depth=1), 7) < order.level(task(depth=2), 0)


def test_a_host_that_many_others_link_to_is_more_urgent_where_that_is_wanted() -> None:
    standings = [TaskStanding(in_degree=count) for count in (0, 1, 3, 1 << 40)]
    tasks = [task(depth=5)] * 4
    wants = WeightedPrioritizer(WeightSheet(in_degree=1.0))
    assert (wants.wants_in_degree, list(wants.levels(tasks, standings))) == (True, [5, 4, 3, 0])
    plain = WeightedPrioritizer()
    assert (plain.wants_in_degree, list(plain.levels(tasks, standings))) == (False, [5, 5, 5, 5])
    check_prioritizer(wants)
