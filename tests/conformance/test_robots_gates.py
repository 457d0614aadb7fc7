"""Every robots gate of ours that obeys keeps the promises of `contracts.robots`, under every policy."""

import pytest

from gossamer.services.robots.policies import POLICIES
from gossamer.services.robots.provider import ObeyRobots, RobotsSheet
from gossamer.testing.gating import check_robots


@pytest.mark.parametrize("policy", POLICIES)
def test_robots(policy: str) -> None:
    check_robots(lambda: ObeyRobots(RobotsSheet(policy=policy)))  # type: ignore[arg-type]  # the names of the table


def test_robots_that_can_keep_next_to_nothing() -> None:
    check_robots(lambda: ObeyRobots(RobotsSheet(memory=1, ready_rules=1)))
