"""The cursor of a lane: what it says is finished stays finished. And what is read of a host, in which order."""

from gossamer.storage.ledger.active_hosts import LEVELS, ActiveHost, Lane, Stretch
from gossamer.storage.ledger.layout import PLACE_BITS, WALKED_OVER, Cursor, Place, pack_cursors, unpack_cursors
from gossamer.values.task import Task

CHUNK = [Task(f"http://a.test/{n}", "a.test") for n in range(6)]


def at(serial: int, index: int = 0) -> Place:
    return (serial << PLACE_BITS) + index


def reopened(cursor: Cursor) -> Lane:
    return Lane(4, unpack_cursors(pack_cursors({4: cursor}))[4], ActiveHost("a.test", b"a"))


def test_a_finished_place_where_the_reading_stopped_is_not_handed_out_again() -> None:
    lane = reopened(Cursor(at(7), 0, (at(7, 2),)))
    assert lane.fill(7, CHUNK, 2) == 2
    lane.take(2)
    lane.more = True
    cursor, _ = lane.cursor_without({at(7, 0), at(7, 1)})
    assert cursor is not None
    again = reopened(cursor)
    assert again.fill(7, CHUNK, 99) == 3
    assert [place for place, _ in again.take(9)] == [at(7, 3), at(7, 4), at(7, 5)]


def test_the_cursor_stays_before_what_is_in_flight() -> None:
    lane = reopened(Cursor(at(7)))
    lane.fill(7, CHUNK, 99)
    lane.take(6)
    ended = {at(7, 1), at(7, 2), at(7, 5)}
    assert lane.cursor_without(ended) == (Cursor(at(7), 0, tuple(sorted(ended))), [])
    lane.more = True
    assert lane.cursor_without(set(lane.flying)) == (Cursor(at(8), 1), [7])


def test_nothing_is_kept_of_a_lane_that_is_over_unless_much_was_deleted() -> None:
    lane = reopened(Cursor(at(7)))
    lane.fill(7, CHUNK, 99)
    lane.take(6)
    assert lane.cursor_without(set(lane.flying)) == (None, [7])
    lane.spent = WALKED_OVER
    assert lane.cursor_without(set(lane.flying)) == (Cursor(at(8), WALKED_OVER + 1), [7])


def test_a_dropped_buffer_is_read_again_from_where_it_began() -> None:
    lane = reopened(Cursor(at(7, 1)))
    lane.fill(7, CHUNK, 99)
    lane.take(2)
    assert lane.empty_buffer() == 3
    assert lane.more
    lane.fill(7, CHUNK, 99)
    assert [place for place, _ in lane.take(9)] == [at(7, 3), at(7, 4), at(7, 5)]


def test_the_cursor_stays_before_a_task_that_was_put_back() -> None:
    lane = reopened(Cursor(at(7)))
    lane.fill(7, CHUNK, 99)
    taken = lane.take(6)
    lane.put_back(*taken[1])
    ended = {at(7, 0), at(7, 2)}
    cursor, chunks = lane.cursor_without(ended)
    assert (cursor, chunks) == (Cursor(at(7, 1), 0, (at(7, 2),)), [])
    lane.end(ended, cursor, chunks)
    assert lane.empty_buffer() == 1
    lane.fill(7, CHUNK, 99)
    assert [place for place, _ in lane.take(9)] == [at(7, 1)], "what is in flight was handed out twice"


def test_deleted_chunks_are_jumped_over_where_they_are_many() -> None:
    held = ActiveHost("a.test", b"a")
    held.cursors = {2: Cursor(at(50), WALKED_OVER), 3: Cursor(at(40), 1), 5: Cursor(at(60, 2), WALKED_OVER)}
    seen = []
    while (stretch := held.unread()) is not None:
        seen.append(stretch)
        held.read_to_the_end(stretch)
    assert seen == [Stretch(0, 0, 2), Stretch(2, 50, 5), Stretch(5, 60, LEVELS)]


def test_what_is_pushed_to_a_known_lane_is_read_before_what_is_less_urgent() -> None:
    held = ActiveHost("a.test", b"a")
    held.cursors = {}
    held.lane(4).fill(7, CHUNK, 2)
    held.read_up_to(4)
    held.pushed(4, 9)
    held.pushed(3, 9)
    held.pushed(200, 9)
    assert held.unread() == Stretch(3, 9, 4), "what was finished before is not walked over"
    held.read_to_the_end(Stretch(3, 9, 4))
    held.lanes[4].buffer.clear()
    assert held.unread() == Stretch(4, 7, 5)
    held.read_to_the_end(Stretch(4, 7, 5))
    assert held.unread() == Stretch(5, 0, LEVELS)
