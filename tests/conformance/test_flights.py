"""Every implementation of flights keeps their promise."""

from gossamer.storage.seen.memory import MemoryFlights
from gossamer.testing.frontier import check_flights


def test_flights_in_memory_keep_the_promise() -> None:
    check_flights(MemoryFlights)
