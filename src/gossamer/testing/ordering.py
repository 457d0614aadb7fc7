"""Conformance suites for prioritizers and traversals: run them over an implementation of your own."""

import random
from collections.abc import Callable, Sequence

from gossamer.contracts.prioritizing import LEVELS, Prioritizer, TaskStanding
from gossamer.contracts.traversal import DEEPEST, Traversal
from gossamer.model.task import Task
from gossamer.testing.judging import SHAPES

#: Tasks of every shape that a frontier meets.
TASKS = tuple(
    Task(url=url, host=f"h{number}.test", depth=depth, source="http://a.test/", relation="a href")
    for number, url in enumerate(SHAPES)
    for depth in (0, 1, 7, 8, 10_000)
)

#: What a frontier may know of them, extremes first.
STANDINGS = (
    TaskStanding(),
    TaskStanding(site=0.0),
    TaskStanding(site=1.0),
    TaskStanding(site=0.7),
    TaskStanding(in_degree=1),
    TaskStanding(in_degree=1 << 40),
)


def check_prioritizer(prioritizer: Prioritizer) -> None:
    """Check that a prioritizer, started, keeps its promises."""
    assert list(prioritizer.levels([], [])) == [], "no level without a task"
    pairs = [(task, standing) for task in TASKS for standing in STANDINGS]
    levels = _levels(prioritizer, pairs)
    assert len(levels) == len(pairs), "one level for each task"
    assert all(type(level) is int and 0 <= level < LEVELS for level in levels), f"levels are 0 to {LEVELS - 1}"
    assert levels == [_levels(prioritizer, [pair])[0] for pair in pairs], "a level depends on the other tasks"
    order = list(range(len(pairs)))
    random.Random(1).shuffle(order)
    shuffled = _levels(prioritizer, [pairs[number] for number in order])
    assert shuffled == [levels[number] for number in order], "a level depends on what was asked before"


def _levels(prioritizer: Prioritizer, pairs: Sequence[tuple[Task, TaskStanding]]) -> list[int]:
    return list(prioritizer.levels([task for task, _ in pairs], [standing for _, standing in pairs]))


def check_traversal(make: Callable[[], Traversal]) -> None:
    """Check that a traversal keeps its promises.

    Args:
        make: returns a fresh, started traversal each time.
    """
    traversal = make()
    source = TASKS[0]
    assert list(traversal.follow([], source)) == [], "an empty call has an empty result"
    assert list(traversal.follow([], None)) == [], "an empty call has an empty result"
    choose = random.Random(1)
    calls = [(choose.sample(TASKS, choose.randrange(len(TASKS))), choose.choice((None, source))) for _ in range(100)]
    for tasks, origin in calls:
        followed = list(traversal.follow(tasks, origin))
        places = [tasks.index(task) for task in followed]
        assert places == sorted(set(places)), "links keep their order, and come once"
    for task in TASKS:
        for urgency in range(LEVELS):
            levels = traversal.level(task, urgency), traversal.host_level(task, urgency)
            assert 0 <= levels[0] <= DEEPEST, f"levels within a host are 0 to {DEEPEST}"
            assert 0 <= levels[1] < LEVELS, f"levels of hosts are 0 to {LEVELS - 1}"
            assert levels == (traversal.level(task, urgency), traversal.host_level(task, urgency)), "a level wavers"
    first, second = make(), make()
    for tasks, origin in calls:
        assert list(first.follow(tasks, origin)) == list(second.follow(tasks, origin)), (
            "the same calls have the same result"
        )
