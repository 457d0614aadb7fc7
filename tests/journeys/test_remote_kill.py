"""Either end of a remote connector is killed under load, again and again, and comes back."""

from pathlib import Path

from tests.remote_kills import kill_both_ends

#: Enough to meet each side while it starts, works and waits; `tests.remote_kills` takes any number.
KILLS = 20


def test_nothing_is_lost_and_nothing_doubled_when_either_end_is_killed(socket_folder: Path) -> None:
    outcome = kill_both_ends(socket_folder, KILLS)
    assert outcome.exact, outcome
    assert outcome.producer_kills
    assert outcome.consumer_kills
