"""An address is asked only while the turn is lent, by all the rules of a crawl of one agent."""

from math import inf

from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Task

THERE, OTHER = "192.0.2.1", "192.0.2.2"


class Asking:
    """Politeness by turns, on a clock that stands where it is put."""

    def __init__(self, **more: object) -> None:
        self.polite = HostPoliteness(PolitenessSheet(address_turns=True, delay=0.0, ip_delay=1.0, **more))  # type: ignore[arg-type]
        self.polite.clock = self  # type: ignore[assignment]
        self.time = 100.0

    def monotonic(self) -> float:
        return self.time

    now = steady = monotonic

    def begin(self, host: str) -> Task | None:
        """Ask the host whose turn it is, which is to be this one."""
        found = self.polite.next(self.time)
        if not isinstance(found, str):
            return None
        assert found == host
        task = Task(f"http://{host}/{self.time}", host)
        self.polite.begin(task, THERE, self.time)
        return task

    def end(self, task: Task) -> None:
        self.polite.ruling(Answer(task.identity, task.host, Outcome.OK, 0.25))


def test_nothing_begins_at_an_address_before_its_turn_is_lent() -> None:
    asking = Asking()
    asking.polite.put("a.test", THERE)
    assert asking.polite.next(asking.time) == inf
    assert asking.polite.turns() == ([THERE], {})
    asking.polite.take_turns({THERE: (1, 0.5)}, [], {})
    assert asking.polite.next(asking.time) == 100.5, "another agent has asked there half a second ago"
    asking.time = 100.5
    assert asking.begin("a.test")
    assert asking.polite.turns() == ([], {})


def test_a_turn_that_is_recalled_comes_back_when_nothing_is_in_flight_and_says_how_long_to_wait() -> None:
    asking = Asking()
    asking.polite.put("a.test", THERE)
    assert asking.polite.next(asking.time) == inf
    asking.polite.take_turns({THERE: (7, 0.0)}, [], {})
    task = asking.begin("a.test")
    assert task is not None
    asking.polite.put("b.test", THERE)
    asking.polite.take_turns({}, [THERE], {})
    assert asking.polite.turns()[1] == {}, "a request is in flight"
    asking.time += 0.25
    asking.end(task)
    assert asking.polite.turns()[1] == {THERE: (7, 0.75)}
    asking.time = 110.0
    assert asking.polite.next(asking.time) == inf, "it is another agent's turn"
    assert asking.polite.turns() == ([THERE], {THERE: (7, 0.0)})
    asking.polite.take_turns({}, [], {THERE: 7})
    assert asking.polite.turns() == ([THERE], {})
    asking.polite.take_turns({THERE: (9, 0.0)}, [], {})
    assert asking.begin("b.test")


def test_a_grant_that_comes_late_does_not_begin_a_turn_that_was_given_back() -> None:
    asking = Asking()
    asking.polite.put("a.test", THERE)
    asking.polite.next(asking.time)
    asking.polite.take_turns({THERE: (3, 0.0)}, [THERE], {})
    asking.polite.take_turns({}, [THERE], {})
    asking.polite.take_turns({THERE: (3, 0.0)}, [], {})
    assert asking.polite.next(asking.time) == inf


def test_a_domain_is_asked_in_turns_too_and_its_address_is_wanted_only_with_it() -> None:
    asking = Asking(domain_turns=True, domain_delay=0.5)
    asking.polite.put("www.a.test", THERE)
    assert asking.polite.next(asking.time) == inf
    assert asking.polite.turns() == (["@a.test"], {})
    asking.polite.take_turns({"@a.test": (1, 0.0)}, [], {})
    assert asking.polite.next(asking.time) == inf
    assert asking.polite.turns() == ([THERE], {})
    asking.polite.take_turns({THERE: (2, 0.0)}, [], {})
    task = asking.begin("www.a.test")
    assert task is not None
    assert asking.polite.turns_held() == {THERE: 2, "@a.test": 1}
    assert asking.polite.next(asking.time) == inf, "no other host waits"
    asking.polite.take_turns({}, ["@a.test", THERE], {})
    asking.end(task)
    assert asking.polite.turns() == ([], {THERE: (2, 1.0), "@a.test": (1, 0.5)})


def test_a_domain_whose_hosts_several_agents_ask_comes_back_with_the_delay_of_the_host() -> None:
    asking = Asking(domain_turns=True, host_turns=True, delays={"www.a.test": 3.0})
    asking.polite.put("www.a.test", THERE)
    assert asking.polite.next(asking.time) == inf
    asking.polite.take_turns({"@a.test": (1, 0.0)}, [], {})
    assert asking.polite.next(asking.time) == inf
    asking.polite.take_turns({THERE: (2, 0.0)}, [], {})
    task = asking.begin("www.a.test")
    assert task is not None
    asking.polite.take_turns({}, ["@a.test"], {})
    asking.time += 0.5
    asking.end(task)
    assert asking.polite.turns() == ([], {"@a.test": (1, 3.0)})
    asking.time += 1.0
    assert asking.polite.turns() == ([], {"@a.test": (1, 2.0)})


def test_addresses_of_which_nothing_is_shared_take_no_turns() -> None:
    polite = HostPoliteness(PolitenessSheet(address_turns=True))
    polite.put("a.test", "127.0.0.1")
    assert polite.next(100.0) == "a.test"
