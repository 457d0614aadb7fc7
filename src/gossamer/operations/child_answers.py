"""A process that reads one question, answers it within limits, and ends.

Place in the flow: the dashboard starts such processes for work on documents that strangers wrote, or on questions that people typed
(:mod:`~gossamer.operations.replaying`, :mod:`~gossamer.operations.table_answers`). The question comes on standard input, and the
answer goes to standard output; where there is none, the status is not 0, and standard error says why in one line.
"""

import os
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from gossamer.flow.limiting import limit
from gossamer.model.errors import GossamerError, UsageError

#: Characters of the line that says why there is no answer.
_COMPLAINT = 1_000

#: Steps by which the process gives way to crawls.
_NICENESS = 5


class Limited(Protocol):
    """A question that says how much its answer may cost."""

    @property
    def memory(self) -> int:
        """Bytes."""
        ...

    @property
    def seconds(self) -> int:
        """CPU time."""
        ...


Q = TypeVar("Q", bound=Limited)


def answer_once(read: Callable[[bytes], Q], answer: Callable[[Q], bytes], subject: str) -> int:
    """Answer the question on standard input.

    Args:
        read: makes the question of its bytes.
        answer: makes the bytes of the answer; runs under the question's limits.
        subject: the thing that asks for too much when memory ends, as "the page".

    Returns:
        The exit status of the process.
    """
    os.nice(_NICENESS)
    question = read(sys.stdin.buffer.read())
    limit(question.memory, question.seconds)
    try:
        sys.stdout.buffer.write(answer(question))
        sys.stdout.buffer.flush()
    except GossamerError as error:
        sys.stderr.write(f"{' '.join(str(error).split())[:_COMPLAINT]}\n")
        return error.exit_code
    except MemoryError:
        sys.stderr.write(f"{subject} needs more memory than it may use\n")
        return UsageError.exit_code
    return 0
