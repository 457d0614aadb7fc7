"""Processes that answer one question each and are killed when they take too long: work on what strangers wrote, or asked.

Place in the flow: questions in SQL (:mod:`tables`), in SPARQL and in words (:mod:`words`) and pages of a replay (:mod:`replays`)
are answered so; the dashboard's own process parses none of them.
"""

import asyncio
from pathlib import Path

from gossamer.flow import children
from gossamer.model.errors import UsageError

#: Bytes of an answer at most: what is sent is cut long before.
MOST = 64 << 20


class KilledChildren:
    """Starts a module for each question."""

    def __init__(self, module: str, seconds: float, at_once: int, advice: str = "ask for less") -> None:
        """Start nothing yet.

        Args:
            module: it is run, with a crawl's directory as its argument.
            seconds: the time of an answer.
            at_once: so many are answered at a time, and others wait.
            advice: a person is told this when an answer takes more time or memory than it may.
        """
        self._module, self._seconds, self._advice = module, seconds, advice
        self._turns = asyncio.Semaphore(at_once)

    def __repr__(self) -> str:
        return f"<KilledChildren of {self._module}, {self._seconds:g} s each>"

    async def ask(self, directory: Path, question: bytes) -> bytes:
        """What a process writes that is given a crawl's directory as its argument, and the question on its standard input.

        Raises:
            UsageError: it could not answer, or not in time.
        """
        async with self._turns:
            return await self._answered(directory, question)

    async def _answered(self, directory: Path, question: bytes) -> bytes:
        child = await children.begun(self._module, str(directory), longest_line=MOST)
        try:
            async with asyncio.timeout(self._seconds):
                answer, complaint = await child.communicate(question)
        except TimeoutError:
            raise UsageError(f"there was no answer within {self._seconds:g} seconds; {self._advice}") from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode:
            said = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise UsageError(said[:1_000] or f"the answer needs more time or memory than it may use; {self._advice}")
        return answer
