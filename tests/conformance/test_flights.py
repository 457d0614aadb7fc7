"""Every implementation of flights keeps their promise."""

from collections.abc import Callable

from gossamer.frontier.contract import Flights
from gossamer.storage.seen.memory import MemoryFlights


def check_flights(make: Callable[[], Flights]) -> None:
    """Check the contract's promise: for every departure exactly one arrival is accepted."""
    flights = make()
    assert not flights.arrive("http://a.test/"), "a flight that never departed does not arrive"
    flights.depart("http://a.test/")
    flights.depart("http://b.test/")
    assert flights.arrive("http://a.test/"), "the first arrival is accepted"
    assert not flights.arrive("http://a.test/"), "a second arrival is refused"
    assert flights.arrive("http://b.test/"), "flights do not disturb each other"
    flights.depart("http://a.test/")
    assert flights.arrive("http://a.test/"), "a new departure opens the flight again"


def test_flights_in_memory_keep_the_promise() -> None:
    check_flights(MemoryFlights)
