"""Rows that are made of what the ledger keeps."""

import pytest

from gossamer.storage.tables.row_tables import host_row
from gossamer.values.ledger_rows import HostState


@pytest.mark.parametrize("delay", [0.0, 7.5])
def test_the_delay_of_a_host_is_in_its_row_with_its_reason_be_it_nothing(delay: float) -> None:
    row = host_row(HostState("a.test", first_seen=1.0, delay=delay, delay_reason="setting"), 2.0)
    assert (row.delay, row.delay_reason) == (delay, "setting")


def test_a_host_that_was_never_asked_has_no_delay() -> None:
    assert host_row(HostState("a.test"), 2.0).delay is None
