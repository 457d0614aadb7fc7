"""Politeness holds under every interleaving: what is begun, what is ended, what is killed and restored."""

import random
from math import inf

from hypothesis import given
from hypothesis import strategies as st
from tests.polite import Polite

from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.provider import UNASKED
from gossamer.frontier.politeness.rules import LayerRules
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer

HOSTS = [f"h{number}.d{number % 2}.test" for number in range(5)]
ADDRESSES = ["198.51.100.1", "198.51.100.2", "127.0.0.1", ""]
OUTCOMES = st.sampled_from(list(Outcome))

#: One event: which host, after how many seconds, how a live request ends, and what its server asks for.
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(HOSTS),
        st.floats(0.0, 20.0),
        OUTCOMES,
        st.sampled_from(["", "3", "junk", "100000"]),
        st.booleans(),
    ),
    max_size=60,
)


def place_of(host: str) -> tuple[str, str]:
    """Domain and address of a host."""
    return host.partition(".")[2], ADDRESSES[HOSTS.index(host) % len(ADDRESSES)]


@given(events=EVENTS, fixed=st.none() | st.floats(0.0, 10.0))
def test_no_interleaving_lets_two_live_requests_or_a_short_gap_through(
    events: list[tuple[str, float, Outcome, str, bool]], fixed: float | None
) -> None:
    rules = LayerRules(pace=PaceRules(delay=fixed))
    polite = Polite(rules)
    now, live = 0.0, set[str]()
    ended: dict[str, float] = {}
    begun: dict[str, float] = {}
    for host, seconds, outcome, field, restarts in events:
        now += seconds
        domain, address = place_of(host)
        if host in live:
            answer = Answer(url="", host=host, outcome=outcome, elapsed=seconds, retry_after=field)
            polite.end(host, answer, now, 1e9 + now)
            live.discard(host)
            if outcome not in UNASKED:
                ended[host] = now
        elif polite.ready_at(host, domain, address, now) <= now:
            assert now - ended.get(host, -inf) >= (1.0 if fixed is None else fixed) - 1e-6
            if address not in ("", "127.0.0.1"):
                assert now - begun.get(address, -inf) >= 0.25 - 1e-6
                begun[address] = now
            polite.begin(host, address, now)
            live.add(host)
        if restarts and not live:
            polite = restarted(polite, now)
            begun.clear()  # a process takes longer to start than an address has to be left alone


def restarted(polite: Polite, now: float) -> Polite:
    """The polite after a restart, on the same clocks; no host may be asked earlier than before it."""
    again = Polite(polite.rules)
    for host in HOSTS:
        note = polite.hosts[host].note(now, 1e9 + now) if host in polite.hosts else None
        if note is not None:
            again.restore(host, note, now, 1e9 + now)
        was, now_is = max(now, polite.blocker(host, "", "")[0]), max(now, again.blocker(host, "", "")[0])
        assert abs(now_is - was) < 1e-6
    return again


@given(
    pages=st.dictionaries(st.sampled_from(HOSTS), st.integers(1, 6), min_size=1),
    outcomes=st.lists(OUTCOMES, min_size=1, max_size=8),
    levels=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    concurrency=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_the_schedule_lets_every_host_come_up_in_the_end(
    pages: dict[str, int], outcomes: list[Outcome], levels: list[int], concurrency: int, seed: int
) -> None:
    polite = Polite(draw=random.Random(seed).random)
    schedule = polite.schedule
    left = dict(pages)
    flights: list[str] = []
    now, done = 0.0, 0
    for number, host in enumerate(left):
        schedule.put(host, *place_of(host), levels[number % len(levels)])
    for _ in range(40 * (sum(left.values()) + 1)):
        turn = schedule.pop(now) if len(flights) < concurrency else inf
        if isinstance(turn, str):
            polite.begin(turn, place_of(turn)[1], now)
            left[turn] -= 1
            flights.append(turn)
        elif flights:
            host = flights.pop(0)
            now += 0.3
            answer = Answer(url="", host=host, outcome=outcomes[done % len(outcomes)], elapsed=0.3)
            polite.end(host, answer, now, now)
            done += 1
            schedule.ended(host, *place_of(host))
            if left[host]:
                schedule.put(host, *place_of(host), levels[done % len(levels)])
        elif turn == inf:
            break
        else:
            assert turn > now
            now = turn
    assert not any(left.values())
    assert not len(schedule)


class Juggler:
    """Calls of a schedule in any order, beside what it must know."""

    def __init__(self) -> None:
        self.polite = Polite(LayerRules(pace=PaceRules(delay=1.0)))
        self.schedule = self.polite.schedule
        self.wanted: set[str] = set()
        self.live: list[str] = []
        self.now = 0.0

    def put(self, host: str, level: int) -> None:
        self.schedule.put(host, *place_of(host), level)
        self.wanted.add(host)

    def drop(self, host: str, _: int) -> None:
        self.schedule.drop(host)
        self.wanted.discard(host)

    def pop(self, *_: object) -> float:
        """Until when to wait; 0 where a host was handed out. `begin` raises if that was too early."""
        turn = self.schedule.pop(self.now)
        if isinstance(turn, float):
            return turn
        assert turn in self.wanted
        self.polite.begin(turn, place_of(turn)[1], self.now)
        self.wanted.discard(turn)
        self.live.append(turn)
        return 0.0

    def end(self, *_: object) -> None:
        if self.live:
            host = self.live.pop(0)
            answer = Answer(url="", host=host, outcome=Outcome.OK, elapsed=0.1)
            self.polite.end(host, answer, self.now, self.now)
            self.schedule.ended(host, *place_of(host))

    def change(self, _: str, seconds: int) -> None:
        self.polite.change(LayerRules(pace=PaceRules(delay=float(seconds))))

    def finish(self) -> None:
        """Everything that is wanted comes up, once what is live has ended and time passes."""
        for _ in range(100):
            wait = self.pop()
            if wait and self.live:
                self.end()
            elif wait:
                self.now = wait if wait < inf else self.now
        assert not self.wanted


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["put", "drop", "pop", "end", "change"]), st.sampled_from(HOSTS), st.integers(0, 3)),
        max_size=80,
    )
)
def test_no_order_of_calls_loses_a_host_or_hands_one_out_early(steps: list[tuple[str, str, int]]) -> None:
    juggler = Juggler()
    for what, host, seconds in steps:
        juggler.now += seconds / 2
        getattr(juggler, what)(host, seconds)
        assert {name for name in HOSTS if name in juggler.schedule} == juggler.wanted
    juggler.finish()
