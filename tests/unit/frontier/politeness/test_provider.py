"""Rules of politeness beside ours: hosts rest as long as they say, and their words say why."""

import asyncio

from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.retries import DAY
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.testing import FakeClock, check_politeness_rule
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Task


class Night:
    """Hosts rest for so many seconds, once."""

    word = "night"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def rest(self, host: str, wall: float) -> float:
        return self.seconds if host == "owl.test" else 0.0


def ruled(*seconds: float) -> tuple[HostPoliteness, list[Night], FakeClock]:
    unit = HostPoliteness(PolitenessSheet(delay=1.0))
    unit.clock = clock = FakeClock()
    rules = [Night(one) for one in seconds]
    unit.rules = {"hosts": rules}
    return unit, rules, clock


def test_a_host_rests_as_long_as_a_rule_says_and_others_go_on() -> None:
    unit, [night], clock = ruled(60.0)
    unit.put("owl.test", "")
    unit.put("lark.test", "")
    now = clock.monotonic()
    assert unit.next(now) == "lark.test"
    assert unit.next(now) == now + 60.0
    assert [(one.host, one.why) for one in unit.held(["owl.test"])] == [("owl.test", "night")]
    asyncio.run(clock.advance(60.0))
    night.seconds = 0.0
    assert unit.next(clock.monotonic()) == "owl.test"


def test_of_several_rules_the_longest_rest_counts_and_none_is_longer_than_a_day() -> None:
    unit, _, clock = ruled(10.0, 1e9, 20.0)
    unit.put("owl.test", "")
    assert unit.next(clock.monotonic()) == clock.monotonic() + DAY


def test_a_rule_never_shortens_a_delay() -> None:
    unit, _, clock = ruled(0.25)
    unit.rules = {}
    unit.put("owl.test", "")
    assert unit.next(clock.monotonic()) == "owl.test"
    unit.begin(Task("http://owl.test/", "owl.test"), "", clock.monotonic())
    unit.answered(Answer("http://owl.test/", "owl.test", Outcome.OK, 0.1))
    unit.rules = {"hosts": [Night(0.25)]}
    unit.put("owl.test", "")
    opens = unit.next(clock.monotonic())
    assert isinstance(opens, float)
    assert opens >= clock.monotonic() + 1.0


def test_the_suite_of_rules_accepts_this_one() -> None:
    check_politeness_rule(Night(5.0))
