"""When a busy agent gives domains to an idle one, and how many."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.agents.growth import AGAIN, BUSY, EACH, WORTH, Growth, Load, RestSpacing
from gossamer.agents.joining import IDLE, LASTING, LEAST, Balance, evened
from gossamer.agents.membership import with_capacities
from gossamer.values.agents import at_work, member

BUSY_ONE = Load(busy=0.95, domains=400, seconds_left=600.0)
IDLE_ONE = Load(busy=0.05)
EVEN = {"agent-00": 1.0, "agent-01": 1.0}


def heard(
    rule: Balance, loads: Mapping[str, Load], capacities: Mapping[str, float] = EVEN, since: float = 0.0
) -> dict[str, float]:
    """What the rule says when these loads have lasted for long enough."""
    for second in range(int(LASTING)):
        assert rule.hear(since + second, loads, capacities) == {}, "it waits whether that lasts"
    return rule.hear(since + LASTING, loads, capacities)


def test_an_agent_without_work_gets_half_of_what_a_busy_one_has() -> None:
    assert heard(Balance(), {"agent-00": Load(0.0), "agent-01": BUSY_ONE}) == {"agent-00": 1.5, "agent-01": 0.5}


def test_an_agent_with_some_work_gets_less() -> None:
    said = heard(Balance(), {"agent-00": Load(0.475), "agent-01": BUSY_ONE})
    assert said == {"agent-00": 1.25, "agent-01": 0.75}


@pytest.mark.parametrize(
    "loads",
    [
        pytest.param((BUSY_ONE, BUSY_ONE), id="both busy"),
        pytest.param((IDLE_ONE, IDLE_ONE), id="both wait"),
        pytest.param((IDLE_ONE, Load(BUSY - 0.01, 400, 600.0)), id="not busy enough"),
        pytest.param((Load(IDLE), BUSY_ONE), id="not idle enough"),
        pytest.param((IDLE_ONE, Load(0.95, 2 * EACH - 1, 600.0)), id="too few domains"),
        pytest.param((IDLE_ONE, Load(0.95, 400, WORTH - 1)), id="soon over"),
    ],
)
def test_domains_stay_where_they_are(loads: tuple[Load, Load]) -> None:
    rule = Balance()
    for second in range(100):
        assert rule.hear(second, dict(zip(EVEN, loads, strict=True)), EVEN) == {}


def test_a_moment_without_work_moves_nothing() -> None:
    rule, idle = Balance(), {"agent-00": IDLE_ONE, "agent-01": BUSY_ONE}
    for second in range(0, 1_000, int(LASTING)):
        assert rule.hear(second, idle, EVEN) == rule.hear(second + LASTING - 1, idle, EVEN) == {}
        assert rule.hear(second + LASTING - 0.5, dict.fromkeys(EVEN, BUSY_ONE), EVEN) == {}


def test_a_crawl_rests_of_itself_less_and_less_often_whatever_for() -> None:
    spacing, loads = RestSpacing(), {"agent-00": IDLE_ONE, "agent-01": BUSY_ONE}
    rule, growth = Balance(spacing), Growth(spacing)
    assert heard(rule, loads)
    rule.postpone(LASTING)
    assert heard(rule, loads, since=LASTING + 1) == {}
    assert {growth.hear(second, 2, 8, BUSY_ONE) for second in range(int(AGAIN))} == {2}
    assert rule.hear(LASTING + AGAIN, loads, EVEN)


def test_capacities_stand_in_the_names_of_members() -> None:
    assert with_capacities(("agent-00", "agent-01=0", "agent-02=2"), {"agent-00": 1.25, "agent-02": 1.75}) == (
        "agent-00=1.25",
        "agent-01=0",
        "agent-02=1.75",
    )


@given(
    st.dictionaries(
        st.from_regex(r"agent-[0-9]{2}", fullmatch=True),
        st.tuples(st.floats(0.0, 1.0), st.floats(LEAST, 9.0).map(lambda number: round(number, 3))),
        min_size=2,
        max_size=8,
    )
)
def test_the_web_is_divided_among_the_same_agents_and_only_idle_ones_get_more(
    agents: dict[str, tuple[float, float]],
) -> None:
    loads = {name: Load(busy, 400, 600.0) for name, (busy, _) in agents.items()}
    before = {name: capacity for name, (_, capacity) in agents.items()}
    busy = [name for name, load in loads.items() if load.busy >= BUSY]
    idle = [name for name, load in loads.items() if load.busy < IDLE]
    if not (busy and idle):
        return
    after = evened(loads, before, busy, idle) or before
    assert after.keys() == before.keys()
    assert sum(after.values()) == pytest.approx(sum(before.values()), abs=0.001 * len(agents))
    for name, capacity in after.items():
        assert capacity >= LEAST
        assert name in busy or capacity >= before[name], "only busy agents give"
        assert name in idle or capacity <= before[name], "only idle agents get"
    written = with_capacities(tuple(before), after)
    assert at_work(written) == tuple(before), "nobody leaves"
    assert {one.agent: one.capacity for one in map(member, written)} == pytest.approx(after)
