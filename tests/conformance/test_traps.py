"""Our trap detection and our watchers keep the promises of their contracts."""

from gossamer.services.aliases import HostAliases
from gossamer.services.traps.provider import LearntTraps, TrapSheet
from gossamer.testing.trapping import check_traps, check_watcher


def test_learnt_traps() -> None:
    check_traps(LearntTraps)
    check_traps(lambda: LearntTraps(TrapSheet(families=4, hosts=4)))


def test_watchers() -> None:
    check_watcher(LearntTraps())
    check_watcher(HostAliases())
