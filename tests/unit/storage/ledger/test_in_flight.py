"""Flights of the queues: what a commit ends, and where it had been popped."""

from gossamer.storage.ledger.active_hosts import ActiveHost, Lane, QueueFlights
from gossamer.storage.ledger.layout import NEW, Place

URL = "http://a.test/"


def departed(*serials: int) -> tuple[QueueFlights, Lane, list[Place]]:
    lane = Lane(0, NEW, ActiveHost("a.test", b"key"))
    flights, places = QueueFlights(), list(serials)
    for place in places:
        flights.depart(URL, lane, place)
    return flights, lane, places


def test_a_url_can_be_in_flight_more_than_once_and_ends_as_often() -> None:
    flights, lane, places = departed(1, 2, 3)
    assert (len(flights), flights.count(URL), flights.count("http://b.test/")) == (3, 3, 0)
    assert flights.places({URL: 2}) == {lane: set(places[:2])}
    assert not flights.land(URL, 2)
    assert flights.places({URL: 1}) == {lane: {places[2]}}
    assert flights.land(URL, 1)
    assert (len(flights), flights.count(URL)) == (0, 0)


def test_flights_that_end_together_leave_none() -> None:
    flights, *_ = departed(1, 2)
    assert flights.land(URL, 2)
    assert len(flights) == 0


def test_the_latest_flight_is_called_back_first() -> None:
    flights, lane, places = departed(1, 2)
    assert flights.call_back(URL) == (lane, places[1])
    assert flights.call_back(URL) == (lane, places[0])
    assert flights.call_back(URL) is None
    assert len(flights) == 0
