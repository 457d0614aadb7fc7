"""Whatever agents do and whoever dies between two questions: the end is never called early, and it is called in the end."""

import random

from hypothesis import given
from hypothesis import strategies as st

from gossamer.agents.shares import AgentReport, Quiescence


class Agent:
    """Works off a queue that survives it, finds work for others, and owes it until they have committed it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.life = 0
        self.commits = 0
        self.queue = 0
        self.owed: list[tuple[Agent, bool]] = []
        """To whom, and whether it has committed it; it is owed until the acknowledgement is here."""

    def report(self) -> AgentReport:
        is_at_rest = not self.queue and not self.owed
        return AgentReport(self.name, str(self.life), self.commits, is_at_rest)

    def step(self, others: list["Agent"], chance: random.Random, energy: list[int]) -> None:
        """One thing that an agent does, or that happens to it."""
        what = chance.random()
        if what < 0.1:
            self.life, self.commits = self.life + 1, 0
            self.owed = [(to, False) for to, _ in self.owed]  # what was not acknowledged is sent again
        elif what < 0.5 and self.owed:
            place = chance.randrange(len(self.owed))
            to, is_committed = self.owed[place]
            if is_committed:
                del self.owed[place]
                self.commits += 1
            else:
                to.commits += 1
                to.queue += 1
                self.owed[place] = (to, True)
        elif self.queue:
            self.queue -= 1
            self.commits += 1
            for _ in range(min(chance.randrange(3), energy[0])):
                energy[0] -= 1
                self.owed.append((chance.choice(others), False))


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 25))
def test_the_end_is_called_when_nobody_works_and_nothing_is_under_way(seed: int, count: int, finds: int) -> None:
    chance = random.Random(seed)
    agents = [Agent(f"agent-{number:02d}") for number in range(count)]
    agents[0].queue, energy = 1, [finds]
    quiescence = Quiescence([agent.name for agent in agents])
    for _ in range(20_000):
        reports = []
        for agent in chance.sample(agents, len(agents)):
            for _ in range(chance.randrange(12)):
                one = chance.choice(agents)
                one.step([other for other in agents if other is not one] or agents, chance, energy)
            if chance.random() < 0.9:  # the others do not answer in time
                reports.append(agent.report())
        if quiescence.is_over(reports):
            assert not any(agent.queue or agent.owed for agent in agents), "the end was called too early"
            return
    raise AssertionError("the end was never called")


def test_an_agent_that_worked_between_two_rounds_is_asked_once_more() -> None:
    rest, busy = AgentReport("agent-00", "1", 5, True), AgentReport("agent-01", "1", 7, False)
    quiescence = Quiescence(["agent-00", "agent-01"])
    at_rest = AgentReport("agent-01", "1", 8, True)
    woken = AgentReport("agent-00", "1", 6, True)
    come_back = AgentReport("agent-01", "2", 8, True)
    rounds = [[rest, busy], [rest, at_rest], [woken, at_rest], [woken, come_back], [woken], [woken, come_back]]
    assert [quiescence.is_over(one) for one in rounds] == [False] * 6
    assert quiescence.is_over([come_back, woken])
