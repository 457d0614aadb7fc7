"""Which flights have been under way for longest."""

from gossamer.storage.seen.memory import MemoryFlights


def test_the_oldest_flights_are_told_first_and_those_that_arrived_are_not() -> None:
    flights = MemoryFlights()
    for name in "abcd":
        flights.depart(name)
    flights.arrive("a")
    flights.arrive("c")
    assert flights.oldest(10) == ["b", "d"]
    assert flights.oldest(1) == ["b"]
