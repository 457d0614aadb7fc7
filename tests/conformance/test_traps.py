"""Our trap detection keeps the promises of its contract."""

from gossamer.services.traps.provider import LearntTraps, TrapSheet
from gossamer.testing.trapping import check_traps


def test_learnt_traps() -> None:
    check_traps(LearntTraps)
    check_traps(lambda: LearntTraps(TrapSheet(families=4, hosts=4)))
