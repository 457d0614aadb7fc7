"""The cursor of a host's queue: what it says is finished stays finished."""

from gossamer.model.task import Task
from gossamer.stores.ledger.chunks import Cursor, pack_cursor, unpack_cursor
from gossamer.stores.ledger.held import Held

CHUNK = [Task(f"http://a.test/{n}", "a.test") for n in range(6)]


def reopened(cursor: Cursor) -> Held:
    held = Held("a.test", b"a")
    held.open_at(unpack_cursor(pack_cursor(cursor)))
    return held


def pop(held: Held, count: int) -> None:
    for _ in range(count):
        held.flying.add(held.buffer.popleft()[0])


def test_a_finished_place_where_the_reading_stopped_is_not_handed_out_again() -> None:
    held = reopened(Cursor(7, 0, ((7, 2),)))
    held.fill(7, CHUNK, 2)
    pop(held, 2)
    cursor = held.cursor_without({(7, 0), (7, 1)})
    again = reopened(cursor)
    again.fill(7, CHUNK, 99)
    assert [place for place, _ in again.buffer] == [(7, 3), (7, 4), (7, 5)]


def test_the_cursor_stays_before_what_is_in_flight() -> None:
    held = reopened(Cursor(7, 0))
    held.fill(7, CHUNK, 99)
    pop(held, 6)
    cursor = held.cursor_without({(7, 1), (7, 2), (7, 5)})
    assert cursor == Cursor(7, 0, ((7, 1), (7, 2), (7, 5)))
    assert list(held.chunks_before(cursor)) == []
    cursor = held.cursor_without(set(held.flying))
    assert cursor == Cursor(8, 0)
    assert list(held.chunks_before(cursor)) == [7]


def test_a_dropped_buffer_is_read_again_from_where_it_began() -> None:
    held = reopened(Cursor(7, 1))
    held.fill(7, CHUNK, 99)
    pop(held, 2)
    assert held.empty_buffer() == 3
    held.fill(7, CHUNK, 99)
    assert [place for place, _ in held.buffer] == [(7, 3), (7, 4), (7, 5)]
