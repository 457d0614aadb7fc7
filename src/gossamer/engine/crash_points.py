"""Crash points: where a test makes a process kill itself, to prove that nothing is lost there (docs/design/kills.md).

Place in the flow: a process that keeps something calls :data:`crash_at` at each :class:`Point`. With `GOSSAMER_CRASH=POINT:N` in
the environment it ends by SIGKILL at the N-th passing of that point. Only tests set the variable; otherwise a point is a call of an
empty function.
"""

import os
import signal
from collections.abc import Callable
from enum import StrEnum
from typing import NoReturn

from gossamer.engine.errors import SettingError

#: The variable of the environment.
VARIABLE = "GOSSAMER_CRASH"


class Point(StrEnum):
    """Places where a process can be made to die."""

    BEGINNING = "beginning"
    ARCHIVE_WRITTEN = "archive-written"
    BEFORE_COMMIT = "before-commit"
    AFTER_COMMIT = "after-commit"
    CHECKPOINT = "checkpoint"
    RESTORING = "restoring"
    RECOVERY = "recovery"
    DELETION = "deletion"
    JOINING = "joining"


def _nothing(point: Point) -> None:
    """No point was asked for."""


def _kill() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def crasher(text: str, kill: Callable[[], object] = _kill) -> Callable[[Point], None]:
    """The function that is called at each point.

    Args:
        text: what the environment says, `POINT:N`; empty for nothing.
        kill: what happens at the N-th passing.

    Raises:
        SettingError: the text is something else.
    """
    if not text:
        return _nothing
    name, _, number = text.partition(":")
    if name not in set(Point) or not number.isdigit() or int(number) < 1:
        known = ", ".join(Point)
        raise SettingError(f"{VARIABLE} is {text!r}; it must be POINT:N with N from 1, and one of the points {known}")
    left = int(number)

    def at(point: Point) -> None:
        nonlocal left
        if point == name:
            left -= 1
            if not left:
                kill()

    return at


#: Call this where a process may die.
crash_at = crasher(os.environ.get(VARIABLE, ""))
