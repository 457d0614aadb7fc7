"""Whoever makes a task of a link makes the same one: url-seen, the commit, and a page that is announced again, nearer."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gossamer.frontier.order import BreadthFirst, WeightedPrioritizer
from gossamer.parsing.duplicates import UrlSeen, UrlSeenSheet
from gossamer.storage.commit.queueing import Choosers, CommitSheet, TaskQueueing
from gossamer.storage.ledger.contract import Group, announced
from gossamer.values.ledger_rows import Meeting
from gossamer.values.outcome import Outcome
from gossamer.values.task import REDIRECTS, RELATIONS, Task, child_depth, keeps_depth, parent_depth, task_of, with_level
from gossamer.values.visit import Link, Response, Visit

RELATED = st.sampled_from(sorted({"a href", "iframe src", "sitemap", *REDIRECTS, *RELATIONS}))
SOURCES = st.builds(
    lambda depth, hops, relation: Task("http://a.test/", "a.test", depth, "http://s.test/", relation, hops=hops),
    st.integers(0, 20),
    st.integers(0, 10),
    RELATED,
)
URL = "http://b.test/x"


class Met:
    """A group to which everything is new but the pages that `links` names: those are met nearer than before."""

    def __init__(self, links: dict[str, list[tuple[str, str]]]) -> None:
        self.kept = links
        self.pushed: list[Task] = []

    def meet(self, tasks: Any) -> Meeting:
        found = list(tasks)
        nearer = [task for task in found if task.url in self.kept]
        return Meeting([task for task in found if task.url not in self.kept], nearer)

    def links_of(self, url: str) -> list[tuple[str, str]] | None:
        return self.kept.get(url)

    def links(self, url: str, links: Any) -> None:
        pass

    def depth_of(self, task: Task) -> int:
        return task.depth - 1

    def tally(self, what: str, name: str, add: int = 0) -> int:
        return add

    def count(self, name: str, number: int = 1) -> None:
        pass

    def push(self, tasks: list[Task]) -> None:
        self.pushed += tasks


def by_url_seen(source: Task, relation: str) -> Task:
    stage = UrlSeen(UrlSeenSheet(again=True))
    [visit] = stage.filter(Visit(source, Response(Outcome.OK), links=(Link(URL, relation),)))
    [task] = visit.new
    return task


def by_commit(source: Task, relation: str) -> Task:
    staged = Met({})
    seen = SimpleNamespace(offer=list)
    choosers = Choosers(cast(Any, seen), BreadthFirst(), WeightedPrioritizer(), (), 1000)
    queueing = TaskQueueing(CommitSheet(), choosers, cast(Group, staged))
    fetched = msgspec.structs.replace(source, depth=source.depth + 1)  # a nearer way was found while it was in flight
    [task] = queueing.queued(Visit(fetched, Response(Outcome.OK), links=(Link(URL, relation),))).new
    return with_level(task, 0)


def by_depths(source: Task, relation: str) -> Task:
    [task] = announced([source], cast(Group, Met({source.url: [(URL, relation)]})), 1000)
    return task


@given(source=SOURCES, relation=RELATED)
def test_all_who_make_a_task_of_a_link_make_the_same_one(source: Task, relation: str) -> None:
    wanted = task_of(source, URL, relation)
    assert by_url_seen(source, relation) == wanted
    assert by_commit(source, relation) == wanted
    assert by_depths(source, relation) == wanted


@given(source=SOURCES, relation=RELATED)
def test_a_task_says_how_far_it_is_and_how_many_redirects_led_to_it(source: Task, relation: str) -> None:
    task = task_of(source, URL, relation)
    assert task.hops == (source.hops + 1 if relation in REDIRECTS else 0)
    assert task.depth - source.depth == (0 if keeps_depth(relation) else 1)
    assert parent_depth(child_depth(source.depth, relation), relation) == source.depth


def test_links_that_are_announced_again_nearer_pass_the_gate_as_all_others_do() -> None:
    class NoX:
        def judge_tasks(self, gate: str, tasks: Any) -> list[str]:
            return ["x" if gate == "schedule" and task.url.endswith("/x") else "" for task in tasks]

    page, other = "http://p.test/", "http://b.test/y"
    staged = Met({page: [(URL, "a href"), (other, "a href")]})
    choosers = Choosers(cast(Any, SimpleNamespace()), BreadthFirst(), WeightedPrioritizer(), (NoX(),), 1000)
    source = Task("http://a.test/", "a.test", 3)
    visit = Visit(source, Response(Outcome.OK), links=(Link(page, "a href"),))
    queued = TaskQueueing(CommitSheet(), choosers, cast(Group, staged)).queued(visit)
    assert ([task.url for task in staged.pushed], queued.rejected) == ([other], {"x": 1})
