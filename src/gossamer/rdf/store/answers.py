"""Answers to questions in SPARQL for the dashboard, each in a process that can be killed.

Place in the flow: the dashboard has a worker (:mod:`gossamer.engine.workers`) answer each question
(:mod:`gossamer.dashboard.questions`). The worker brings the store up to date and copies it, as `gossamer sparql` does, and
the copy is asked in a further process (:mod:`gossamer.rdf.store.asking`), which ends when there is enough to show.
"""

import asyncio
import time
from pathlib import Path

import msgspec

from gossamer.engine.worker import Caller
from gossamer.query.contract import TripleAnswer, TripleQuestion
from gossamer.rdf.store.asking import QuestionLimits, TooMuch, ask, current_copy
from gossamer.rdf.store.questions import SparqlQuestion
from gossamer.values.errors import UsageError

#: Bytes of an answer that are read, characters of a cell that are shown, and characters of a graph.
ANSWER, CELL, GRAPH = 4_000_000, 2_000, 200_000

#: Seconds of the time of an answer that are left for the end of the process that is asked, and for what is removed then.
_LAST = 1.0


class _Enough(Exception):
    """What is shown has been read."""


class _Beginning:
    """Takes an answer until there is enough of it."""

    def __init__(self, rows: int) -> None:
        self.form = ""
        self.is_more = False
        self._rows = rows
        self._data = bytearray()
        self._lines = 0

    async def begin(self, form: str) -> None:
        self.form = form

    async def take(self, piece: bytes) -> None:
        self._data += piece
        self._lines += piece.count(b"\n")
        # The first line names the columns, and the one behind the last that is shown says that there are more.
        if len(self._data) > ANSWER or (self.form == "tsv" and self._lines > self._rows + 1):
            self.is_more = True
            raise _Enough

    def answer(self) -> TripleAnswer:
        text = self._data.decode("utf-8", "replace")
        if self.form != "tsv":
            return TripleAnswer([], [], text[:GRAPH], self.is_more or len(text) > GRAPH)
        whole = text[: text.rfind("\n") + 1] if self.is_more else text
        head, *lines = whole.removesuffix("\n").split("\n")
        if not head.startswith("?"):  # ASK is answered with one word
            head, lines = "?answer", [head]
        rows = [[cell[:CELL] for cell in line.split("\t")] for line in lines[: self._rows]]
        return TripleAnswer([name.removeprefix("?") for name in head.split("\t")], rows, "", self.is_more)


def answer_triples(question: TripleQuestion, caller: Caller) -> bytes:
    """A :class:`~gossamer.query.contract.TripleAnswer` as JSON. Raises as :func:`answer`."""
    return msgspec.json.encode(answer(question))


def answer(question: TripleQuestion) -> TripleAnswer:
    """The answer.

    Raises:
        GossamerError: it cannot be answered, or wants more than it may have.
    """
    directory = Path(question.directory)
    ends = time.monotonic() + question.seconds - _LAST
    beginning = _Beginning(question.rows)
    with current_copy(directory, question.seconds - _LAST) as copy:
        limits = QuestionLimits(max(ends - time.monotonic(), _LAST), question.memory)
        asked = SparqlQuestion(question.query, "tsv", "turtle")
        try:
            asyncio.run(ask(copy, asked, limits, beginning.take, beginning.begin))
        except _Enough:
            pass
        except TooMuch as error:
            text = (
                f"{str(error).partition(';')[0]}; ask for less, or give it more: gossamer sparql {directory} --timeout"
            )
            raise UsageError(text) from None
    return beginning.answer()
