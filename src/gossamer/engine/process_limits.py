"""Limits of a process that works for strangers, and the points where a test makes a process kill itself.

Place in the flow: a process that answers questions or reads documents of strangers calls :func:`limit` first. A process that
keeps something calls :data:`crash_at` at each :class:`Point`: with `GOSSAMER_CRASH=POINT:N` in the environment it ends by SIGKILL
at the N-th passing of that point, to prove that nothing is lost there (docs/design/kills.md). Only tests set the variable;
otherwise a point is a call of an empty function.
"""

import os
import resource
import signal
from collections.abc import Callable
from enum import StrEnum
from typing import NoReturn

from gossamer.engine.errors import SettingError


def limit(memory: int, seconds: int) -> None:
    """Take no more memory (bytes) and CPU time than this, where the system can see to it."""
    for what, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, seconds)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


#: The variable of the environment.
VARIABLE = "GOSSAMER_CRASH"


class Point(StrEnum):
    """Where a process can be made to die."""

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
    """What is called at each point.

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
