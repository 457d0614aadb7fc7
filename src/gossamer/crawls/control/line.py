"""Questions to one agent, over the control socket that it serves as any crawl does (:mod:`server`).

Place in the flow: the supervisor has one line to each agent. An agent that is being started again does not answer, and holds up
no round.
"""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.control import wire
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.values.errors import GossamerError

#: Seconds for an answer: an agent answers between two steps of its own. A checkpoint takes longer.
PATIENCE = 10.0


class AgentSilent(GossamerError):
    """The agent does not answer: it is not there, or is being started again."""


def place_of(directory: Path, agent: str) -> Path:
    """The folder of an agent's state: its control socket is called after it, as a crawl's is after its directory."""
    return directory / STATE_DIRECTORY / agent


class AgentLine:
    def __init__(self, directory: Path, agent: str) -> None:
        self._place = place_of(directory, agent)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()
        self.is_silent = False
        """It has not answered for long: the others do not wait for it, while one question stays open."""

    async def ask(self, request: wire.ControlRequest, patience: float = PATIENCE) -> wire.Answered:
        """Ask, and wait for the answer. Raises AgentSilent: there is none; RequestRefused: it was not done."""
        if self.is_silent:
            raise AgentSilent(f"{self._place.name} does not answer: it is silent")
        return await self._answer(request, patience)

    async def beat(self, request: wire.ControlRequest, form: Any) -> Any:
        """Ask for a value of this form, and wait for as long as it takes. Raises as :meth:`ask`, where the process is gone."""
        return self._value(await self._answer(request, None), form)

    async def _answer(self, request: wire.ControlRequest, patience: float | None) -> wire.Answered:
        try:
            async with asyncio.timeout(patience), self._turn:
                try:
                    reader, writer = self._streams or await self._connected()
                    writer.write(wire.encode(request))
                    await writer.drain()
                    header = await reader.readexactly(wire.HEADER)
                    answer = wire.read_answer(await reader.readexactly(wire.read_length(header, wire.MAX_ANSWER)))
                except BaseException:
                    # Only the one that has the turn hangs up: a later answer would be taken for that of the next question.
                    self.close()
                    raise
        except (OSError, EOFError, TimeoutError, wire.Malformed) as error:
            raise AgentSilent(f"{self._place.name} does not answer: {type(error).__name__}") from None
        if isinstance(answer, wire.NotDone):
            raise wire.RequestRefused(answer)
        return answer

    async def told(self, request: wire.ControlRequest, form: Any, patience: float = PATIENCE) -> Any:
        return self._value(await self.ask(request, patience), form)

    @staticmethod
    def _value(answer: wire.Answered, form: Any) -> Any:
        assert isinstance(answer, wire.Told)
        return msgspec.json.decode(answer.value, type=form)

    async def do(self, request: wire.ControlRequest, patience: float = PATIENCE) -> str:
        """Ask for something to be done; returns what was done, in words. Raises as :meth:`ask`."""
        answer = await self.ask(request, patience)
        assert isinstance(answer, wire.Done)
        return answer.text

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for path in wire.sockets(self._place):
            try:
                reader, writer = await asyncio.open_unix_connection(path)
            except OSError:
                continue  # no process has listened here, or none does any more
            if wire.other_end_is(writer):
                self._streams = reader, writer
                return self._streams
            writer.close()
        raise ConnectionRefusedError

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
