"""The questions of a supervisor to agents and masters, beside what people ask (:mod:`gossamer.crawls.control.messages`); how long
these go on when none asks.

Place in the flow: the supervisor sends these over the control socket of an agent (:mod:`~gossamer.crawls.control.server`). No
person and no browser sends them, and a crawl that is no agent does not know them."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from gossamer.crawls.control.messages import Name
from gossamer.crawls.control.wire import Answered, ControlRequest, Done, Listed, ProcessRequest, told
from gossamer.engine.errors import WiringError
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.task import SetAside

T = TypeVar("T")

#: Exit statuses by which an agent says that a person has to do something before it can run.
REFUSING = frozenset({UsageError.exit_code, WiringError.exit_code, CrawlDirectoryError.exit_code})


class News(ProcessRequest, frozen=True, tag="news"):
    """Tell the news of this agent. Its supervisor asks again and again."""

    steers = False
    first: bool = False
    """The supervisor has just taken it over, and knows nothing of it."""

    async def act(self, crawl: Any) -> Answered:
        return told(crawl.news(first=self.first))


class SetAsideRows(msgspec.Struct, frozen=True):
    """The pages that an agent has set aside."""

    rows: list[SetAside]


class ReadAside(ControlRequest, frozen=True, tag="read-aside"):
    """Tell the pages that this agent has set aside."""

    steers = False

    async def act(self, crawl: Any) -> Answered:
        return told(SetAsideRows(list(crawl.ledger.aside())))


class ReadMaster(ProcessRequest, frozen=True, tag="read-master"):
    """How does this master stand?"""

    steers = False

    async def act(self, crawl: Any) -> Answered:
        return told(crawl.master_standing())


class Finish(ProcessRequest, frozen=True, tag="finish"):
    """The whole crawl is over, says the supervisor of this agent: end as one that has nothing left."""

    steers = False

    async def act(self, crawl: Any) -> Answered:
        crawl.finish()
        return Done("it ends")


class SetAgent(ProcessRequest, frozen=True, tag="set-agent"):
    """Change settings of one unit of this agent until it ends: its supervisor keeps what is to last."""

    steers = False
    unit: Name
    settings: dict[Name, Any]

    async def act(self, crawl: Any) -> Answered:
        await crawl.set(self.unit, self.settings)
        return Done("it is set")


class LendTurns(ControlRequest, frozen=True, tag="lend-turns"):
    """Which addresses this agent may ask, says its supervisor (:mod:`lending`)."""

    steers = False
    granted: dict[str, tuple[int, float]]
    """Address -> number of the turn, and the seconds after which it begins."""
    recalled: list[str]
    returned: dict[str, int]
    """Address -> number of the turn of which the supervisor knows that it has ended."""

    async def act(self, crawl: Any) -> Answered:
        crawl.take_turns(self.granted, self.recalled, self.returned)
        return Done("it is known")


class LendRates(ControlRequest, frozen=True, tag="lend-rates"):
    """How much of rates of the whole crawl this agent may use, says its supervisor (:mod:`shares`)."""

    steers = False
    shares: dict[str, float]
    """Rate, by its setting's name -> multiple of the even part."""

    async def act(self, crawl: Any) -> Answered:
        crawl.take_rates(self.shares)
        return Done("it is known")


class OfferDomains(ControlRequest, frozen=True, tag="offer-domains"):
    """Which domains could another agent have, so many of those that are being asked?"""

    steers = False
    share: float
    most: int

    async def act(self, crawl: Any) -> Answered:
        return Listed(crawl.moving.offered(self.share, self.most))


class MoveDomains(ControlRequest, frozen=True, tag="move-domains"):
    """Do a step of a move of domains (:mod:`domain_moves`)."""

    steers = False
    step: str
    move: dict[str, Any]

    async def act(self, crawl: Any) -> Answered:
        return told(await crawl.moving.asked(self.step, self.move))


#: All of them, for the server of the control socket of an agent or a master.
REQUESTS: tuple[type[ControlRequest], ...] = (
    *(News, ReadAside, ReadMaster, Finish, SetAgent),
    *(LendTurns, LendRates, OfferDomains, MoveDomains),
)

# Agents that work on without their supervisor: how long they go on alone.

#: Seconds that an agent goes on without being asked for news: long enough for a person, or for a service, to start another
#: supervisor; not so long that forgotten agents ask hosts for days.
ALONE = 600.0

#: The part of a lease after which an agent on a machine of its own asks no host, so that nothing is in flight when another one
#: takes over.
QUIET = 0.75

#: Lines that an agent keeps for its next supervisor, the last ones: more would say the same.
_MOST_UNHEARD = 100


class Solitude:
    """The time of a process without a supervisor, and what it has to tell the next one. Pure: it is told the time."""

    def __init__(self, report: Callable[[str], bool], now: float) -> None:
        """It is as if it had just been asked. `report` tells a line, and says whether it is heard; `now` is monotonic seconds."""
        self._tell = report
        self._unheard: deque[str] = deque(maxlen=_MOST_UNHEARD)
        self._asked = now

    def tell(self, line: str) -> None:
        """Tell a line, or keep it."""
        if not self._tell(line):
            self._unheard.append(line)

    def asked(self, now: float) -> list[str]:
        """A supervisor asks for news: the lines that none has heard, once."""
        self._asked = now
        lines = list(self._unheard)
        self._unheard.clear()
        return lines

    def is_over(self, now: float, after: float = ALONE) -> bool:
        """It has been alone for so long (seconds) that it is to stop, or to pause."""
        return now - self._asked >= after


#: Seconds between two looks at whether all is over.
_LOOK = 0.2


async def unless(work: Coroutine[Any, Any, T], is_over: Callable[[], bool]) -> T | None:
    """The result of some work that may be long; None where all is over before, and it was given up."""
    task = asyncio.create_task(work)
    try:
        while not task.done() and not is_over():
            await asyncio.wait([task], timeout=_LOOK)
        return task.result() if task.done() else None
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
