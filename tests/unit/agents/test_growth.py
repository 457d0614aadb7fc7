"""When agents join a crawl by themselves: where it has no core left for a while, has enough to do, and the machine has room."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.agents.joining import (
    AGAIN,
    BUSY,
    CALM,
    EACH,
    GROWN_AFTER,
    WORTH,
    Growth,
    Load,
    bounded,
    together,
    why_fixed,
)
from gossamer.crawls import machine
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.machine import AGENT_MEMORY, room_for_agents
from gossamer.crawls.options import all_options
from gossamer.engine.planning import plan
from gossamer.engine.sheet import build
from gossamer.frontier.limits import FrontierSheet

LOADED = Load(busy=0.95, domains=400, seconds_left=600.0)


def heard(rule: Growth, *loads: Load, since: float = 0.0, agents: int = 1, most: int = 8) -> list[int]:
    """What the rule says to one load after the other, a second apart."""
    return [rule.hear(since + second, agents, most, load) for second, load in enumerate(loads)]


def busy(seconds: float, share: float = 0.95) -> Iterator[Load]:
    return (Load(share, 400, 600.0) for _ in range(int(seconds) + 1))


def test_agents_join_a_crawl_that_has_been_busy_for_a_while() -> None:
    said = heard(Growth(), *busy(GROWN_AFTER))
    assert said == [1] * int(GROWN_AFTER) + [8]


def test_a_crawl_that_waits_for_servers_never_grows_however_many_sites_wait() -> None:
    assert set(heard(Growth(), *busy(1_000, 0.6))) == {1}
    assert set(heard(Growth(), *busy(1_000, BUSY - 0.01))) == {1}


def test_moments_of_work_among_moments_of_waiting_are_not_enough() -> None:
    waves = [*busy(GROWN_AFTER - 2), Load(CALM - 0.01, 400, 600.0)] * 100
    assert set(heard(Growth(), *waves)) == {1}


def test_what_lies_between_busy_and_calm_decides_nothing() -> None:
    wavering = [Load(0.95 if second % 2 else (BUSY + CALM) / 2, 400, 600.0) for second in range(int(GROWN_AFTER) + 2)]
    assert heard(Growth(), *wavering)[-1] == 8


def test_there_are_as_many_agents_as_domains_bound_and_machine_allow() -> None:
    assert heard(Growth(), *busy(GROWN_AFTER), most=2)[-1] == 2
    few = [Load(0.95, 3 * EACH + 1, 600.0)] * (int(GROWN_AFTER) + 1)
    assert heard(Growth(), *few)[-1] == 3
    assert heard(Growth(), *few, agents=3)[-1] == 3, "those that there are have their part"
    one = [Load(0.95, EACH, 600.0)] * (int(GROWN_AFTER) + 1)
    assert heard(Growth(), *one)[-1] == 1, "a crawl of few sites stays as it is"


def test_a_crawl_that_is_soon_over_stays_as_it_is() -> None:
    assert set(heard(Growth(), *[Load(0.95, 400, WORTH - 1)] * 100)) == {1}


def test_a_crawl_that_could_not_come_to_rest_is_asked_later_and_later() -> None:
    rule = Growth()
    assert heard(rule, *busy(GROWN_AFTER))[-1] == 8
    rule.postpone(GROWN_AFTER)
    again = heard(rule, *busy(AGAIN), since=GROWN_AFTER + 1)
    assert again.index(8) + 1 == AGAIN
    rule.postpone(2 * AGAIN)
    assert set(heard(rule, *busy(2 * AGAIN - 2), since=2 * AGAIN + 1)) == {1}


def test_loads_of_agents_are_added_up() -> None:
    assert together([LOADED, Load(0.05, 3, 10.0)]) == Load(0.5, 403, 600.0)


@pytest.mark.parametrize(
    ("cores", "free", "expected"), [(8, None, 8), (8, 2.5, 4), (1, 100, 2), (8, 0, 2), (64, 1_000, 64)]
)
def test_agents_have_a_core_and_memory_each(cores: int, free: float | None, expected: int) -> None:
    assert room_for_agents(2, cores, None if free is None else int(free * AGENT_MEMORY)) == expected
    assert room_for_agents(2, cores, None if free is None else int(free * 200_000_000), 200_000_000) == expected


def test_a_person_may_allow_fewer_agents_than_the_machine_has_room_for() -> None:
    assert bounded(FrontierSheet(max_agents=1), 1) == 1
    assert 1 <= bounded(FrontierSheet(max_agents=2), 1) <= 2
    assert 1 <= bounded(FrontierSheet(), 1) <= machine.cores()


def test_a_group_of_processes_has_the_cores_and_the_memory_of_its_quota(tmp_path: Path) -> None:
    everywhere = machine.cores(tmp_path)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert machine.cores(tmp_path) == everywhere
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert machine.cores(tmp_path) == 1
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 700\ninactive_file 150\n")
    assert machine.free_memory(tmp_path) == 250


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, ""),
        ({"cookies": "host"}, "cookies are in the memory"),
        ({"mobile": True, "runtime": ["a.test=http://127.0.0.1:1"]}, "mobile crawlers"),
    ],
)
def test_a_crawl_whose_process_has_what_others_lack_has_as_many_agents_as_a_person_says(
    options: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOSSAMER_RUNTIME_KEY", "0" * 64)
    graph = plan(compile_wiring(["http://a.test/"], build(all_options(), options)), catalog())
    assert why_fixed(graph).startswith(why)
    assert bool(why_fixed(graph)) == bool(why)
