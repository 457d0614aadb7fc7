"""Every designation of ours keeps the promises of `storage.mailbox.contract`."""

from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.testing import check_designation


def test_ring() -> None:
    check_designation(lambda members: RingDesignation(RingSheet(members=tuple(map(str, members)))))


def test_ring_that_learns_of_its_members_while_it_runs() -> None:
    ring = RingDesignation()

    def told(members: object) -> RingDesignation:
        before, ring.sheet = ring.sheet, RingSheet(members=tuple(map(str, members)))  # type: ignore[call-overload]
        ring.changed(before)
        return ring

    check_designation(told)
