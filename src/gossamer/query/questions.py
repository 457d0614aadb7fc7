"""Searches and questions in SPARQL as the dashboard sends them to the processes that answer them.

Place in the flow: :mod:`gossamer.dashboard.questions` writes them for :mod:`~gossamer.search.indexing` and
:mod:`~gossamer.rdf.store.answers`. They stand here so that the dashboard loads neither index nor triple store.
"""

import os
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from gossamer.engine.process_limits import limit
from gossamer.values.errors import GossamerError, UsageError

# A process that reads one question, answers it within limits, and ends.
#
# Place in the flow: the dashboard starts such processes for work on documents that strangers wrote, or on questions that
# people typed (:mod:`~gossamer.analysis.replaying`, :mod:`~gossamer.analysis.table_answers`). The question comes on
# standard input, and the answer goes to standard output; where there is none, the status is not 0, and standard error says
# why in one line.

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


class SearchQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A search. Each filter that is given holds."""

    memory: int
    """Bytes that the answer may take."""
    seconds: int
    """CPU time that it may take."""
    words: str = ""
    hosts: tuple[str, ...] = ()
    """Only on one of these hosts, or below one."""
    languages: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Only with a thing of one of these types, each an IRI or `schema:Product`."""
    start: int = 0
    most: int = 10


class TripleQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question in SPARQL."""

    memory: int
    """Bytes that the answer may take."""
    seconds: int
    """Time that it may take, by the clock."""
    rows: int
    """Rows that are shown."""
    query: str


class TripleAnswer(msgspec.Struct, frozen=True):
    """Rows, or a graph."""

    columns: list[str]
    """Names of variables; none where the answer is a graph."""
    rows: list[list[str]]
    """Each an array of terms as Turtle writes them; long ones are cut."""
    graph: str
    """A graph as Turtle."""
    is_more: bool
    """There is more behind these."""


class Answerable(msgspec.Struct, frozen=True):
    """What can be asked of a crawl. An empty text says that it can; any other says why it cannot."""

    sparql: str
    search: str
