"""Every robots gate of ours that obeys keeps the promises of `frontier.robots.contract`, under every policy."""

import asyncio
from itertools import count
from pathlib import Path

import pytest

from gossamer.frontier.robots.machine import POLICIES
from gossamer.frontier.robots.provider import ObeyRobots, RobotsSheet
from gossamer.frontier.robots.sharing import SharingRobots, UserRobotsAnswers, UserRobotsAnswersSheet
from gossamer.testing.frontier import check_robots, check_robots_answers


@pytest.mark.parametrize("policy", POLICIES)
def test_robots(policy: str) -> None:
    check_robots(lambda: ObeyRobots(RobotsSheet(policy=policy)))  # type: ignore[arg-type]  # the names of the table


def test_robots_that_can_keep_next_to_nothing() -> None:
    check_robots(lambda: ObeyRobots(RobotsSheet(memory=1, ready_rules=1)))


def test_robots_that_are_shared(tmp_path: Path) -> None:
    folders = count()

    def alone() -> SharingRobots:
        gate = SharingRobots()
        gate.answers = answers(tmp_path / str(next(folders)))
        return gate

    check_robots(alone)


def test_robots_answers_of_a_user(tmp_path: Path) -> None:
    check_robots_answers(lambda: answers(tmp_path))


def answers(folder: Path) -> UserRobotsAnswers:
    found = UserRobotsAnswers(UserRobotsAnswersSheet(folder=str(folder)))
    asyncio.run(found.start())
    return found
