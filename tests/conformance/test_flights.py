"""Every implementation of flights keeps their promise."""

from gossamer.stores.flights import MemoryFlights
from gossamer.testing.flights import check_flights


def test_flights_in_memory_keep_the_promise() -> None:
    check_flights(MemoryFlights)
