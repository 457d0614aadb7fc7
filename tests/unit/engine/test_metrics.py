"""Metrics are read as a value, without disturbing the unit."""

from gossamer.engine.unit import Metrics


def test_a_snapshot_has_counters_and_gauges_and_does_not_change_later() -> None:
    metrics = Metrics()
    queue: list[int] = [1, 2]
    metrics.count("pages")
    metrics.count("bytes", 10)
    metrics.gauge("queued", lambda: len(queue))
    snapshot = metrics.snapshot()
    metrics.count("pages")
    queue.clear()
    assert snapshot == {"pages": 1, "bytes": 10, "queued": 2}
    assert metrics.snapshot() == {"pages": 2, "bytes": 10, "queued": 0}


def test_looking_at_a_counter_that_never_counted_adds_none_to_what_is_shown() -> None:
    assert Metrics().snapshot() == {}


def test_a_later_gauge_of_the_same_name_replaces_the_first() -> None:
    metrics = Metrics()
    metrics.gauge("queued", lambda: 1)
    metrics.gauge("queued", lambda: 2)
    assert metrics.snapshot() == {"queued": 2}
