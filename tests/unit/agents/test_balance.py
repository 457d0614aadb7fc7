"""When a busy agent gives domains to an idle one, and how many; and whose they are then, whoever joins or leaves."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.agents.handing_over import (
    DividedByRing,
    left_by_ring,
    lies_in,
    moves_by_ring,
    read_moved,
    without_points,
    write_moved,
)
from gossamer.agents.joining import BUSY, IDLE, LASTING, LEFT, Balance, Load, Wish
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.options import CrawlOptions
from gossamer.values.agents import at_work
from gossamer.values.errors import CrawlDirectoryError

BUSY_ONE = Load(busy=0.95, domains=400, seconds_left=600.0)
IDLE_ONE = Load(busy=0.05)
AGENTS = ("agent-00", "agent-01")


def heard(rule: Balance, loads: Mapping[str, Load], since: float = 0.0) -> Wish | None:
    """What the rule says when these loads have lasted for long enough."""
    for second in range(int(LASTING)):
        assert rule.hear(since + second, loads) is None, "it waits whether that lasts"
    return rule.hear(since + LASTING, loads)


def test_an_agent_without_work_gets_half_of_what_a_busy_one_has() -> None:
    assert heard(Balance(), {"agent-00": Load(0.0), "agent-01": BUSY_ONE}) == Wish("agent-01", "agent-00", 0.5)


def test_an_agent_with_some_work_gets_less() -> None:
    assert heard(Balance(), {"agent-00": Load(0.475), "agent-01": BUSY_ONE}) == Wish("agent-01", "agent-00", 0.25)


def test_the_busiest_of_several_gives_to_the_idlest() -> None:
    loads = {"agent-00": Load(0.9, 9, 60.0), "agent-01": Load(0.4), "agent-02": IDLE_ONE, "agent-03": BUSY_ONE}
    found = heard(Balance(), loads)
    assert found is not None
    assert (found.giver, found.taker) == ("agent-03", "agent-02")


@pytest.mark.parametrize(
    "loads",
    [
        pytest.param((BUSY_ONE, BUSY_ONE), id="both busy"),
        pytest.param((IDLE_ONE, IDLE_ONE), id="both wait"),
        pytest.param((IDLE_ONE, Load(BUSY - 0.01, 400, 600.0)), id="not busy enough"),
        pytest.param((Load(IDLE), BUSY_ONE), id="not idle enough"),
        pytest.param((IDLE_ONE, Load(0.95, 1, 600.0)), id="too few domains"),
        pytest.param((IDLE_ONE, Load(0.95, 400, LEFT - 1)), id="soon over"),
    ],
)
def test_domains_stay_where_they_are(loads: tuple[Load, Load]) -> None:
    rule = Balance()
    assert not any(rule.hear(second, dict(zip(AGENTS, loads, strict=True))) for second in range(100))


def test_a_moment_without_work_moves_nothing() -> None:
    rule, idle = Balance(), {"agent-00": IDLE_ONE, "agent-01": BUSY_ONE}
    for second in range(0, 1_000, int(LASTING)):
        assert rule.hear(second, idle) is None
        assert rule.hear(second + LASTING - 1, idle) is None
        assert rule.hear(second + LASTING - 0.5, dict.fromkeys(AGENTS, BUSY_ONE)) is None


def test_after_a_move_the_loads_have_time_to_follow() -> None:
    rule, loads = Balance(), {"agent-00": IDLE_ONE, "agent-01": BUSY_ONE}
    assert heard(rule, loads)
    assert heard(rule, loads, since=LASTING)


MOVED = {"a.test": "agent-01", "b.test": "agent-02", "c.test": "agent-00"}
NAMES = [*MOVED, *(f"d{number}.test" for number in range(20))]


@pytest.mark.parametrize(
    "after",
    [
        ("agent-00", "agent-01", "agent-02", "agent-03"),
        ("agent-00", "agent-01", "agent-02=0"),
        ("agent-00", "agent-01=0", "agent-02=0"),
    ],
)
@pytest.mark.parametrize("wanted", [{}, {"a.test": "agent-00", "d3.test": "agent-02", "d4.test": "agent-01"}])
def test_domains_that_moved_or_move_keep_their_agent_as_long_as_it_stays(
    wanted: dict[str, str], after: tuple[str, ...]
) -> None:
    settings = compile_wiring(["http://a.test/"], CrawlOptions()).providers["ledger"].settings
    before = ("agent-00", "agent-01", "agent-02")
    moves, becomes = moves_by_ring(before, after, MOVED, wanted), {**MOVED, **wanted}
    then = DividedByRing(after, settings, left_by_ring(after, becomes))
    now = DividedByRing(before, settings, MOVED)
    assert {domain: now.owner(domain) for domain in MOVED} == MOVED
    for name in NAMES:
        takers = [taker for (giver, taker), arcs in moves.items() if now.owner(name) == giver and lies_in(arcs, name)]
        assert takers == ([then.owner(name)] if then.owner(name) != now.owner(name) else [])
        assert [agent for agent in at_work(after) if lies_in(then.arcs(agent), name)] == [then.owner(name)]
        if becomes.get(name) in at_work(after):
            assert then.owner(name) == becomes[name]


@given(
    st.lists(st.integers(0, 40), unique=True, max_size=8).map(lambda ends: sorted(ends)[: len(ends) // 2 * 2]),
    st.sets(st.integers(0, 40)),
)
def test_points_are_taken_out_of_stretches(ends: list[int], points: set[int]) -> None:
    arcs = list(zip(ends[::2], ends[1::2], strict=True))
    left = without_points(arcs, points)
    assert left == sorted(left)
    inside = {point for first, last in arcs for point in range(first, last + 1)}
    assert {point for first, last in left for point in range(first, last + 1)} == inside - points


def test_what_has_moved_is_noted_and_a_damaged_note_is_told(tmp_path: Path) -> None:
    (tmp_path / "state/supervisor").mkdir(parents=True)
    assert read_moved(tmp_path) == {}
    write_moved(tmp_path, MOVED)
    assert read_moved(tmp_path) == MOVED
    write_moved(tmp_path, {})
    assert not (tmp_path / "state/supervisor/moved.json").exists()
    (tmp_path / "state/supervisor/moved.json").write_text("{")
    with pytest.raises(CrawlDirectoryError, match=r"moved\.json is damaged"):
        read_moved(tmp_path)
