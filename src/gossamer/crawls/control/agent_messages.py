"""What a supervisor asks agents and masters, beside what people ask (:mod:`~gossamer.crawls.control.messages`).

Place in the flow: the supervisor sends these over the control socket of an agent (:mod:`gossamer.agents.line`). No person
and no browser sends them, and a crawl that is no agent refuses them.
"""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from gossamer.crawls.control.wire import Answered, ControlRequest, Done, ProcessRequest, told

if TYPE_CHECKING:
    from gossamer.crawls.control.steerable import Steerable, Stoppable

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class News(ProcessRequest, frozen=True, tag="news"):
    """What has this agent come to? Asked by its supervisor, again and again."""

    steers = False
    first: bool = False
    """The supervisor has just taken it over, and knows nothing of it."""

    async def act(self, crawl: "Stoppable") -> "Answered":
        """Tell."""
        from gossamer.crawls.control.steerable import as_process

        return told(as_process(crawl).news(first=self.first))


class ReadMaster(ProcessRequest, frozen=True, tag="read-master"):
    """How does this master stand?"""

    steers = False

    async def act(self, crawl: "Stoppable") -> "Answered":
        """Tell."""
        from gossamer.crawls.control.steerable import as_master

        return told(as_master(crawl).master_standing())


class Finish(ProcessRequest, frozen=True, tag="finish"):
    """The whole crawl is over, says the supervisor of this agent: end as one that has nothing left."""

    steers = False

    async def act(self, crawl: "Stoppable") -> "Answered":
        """End."""
        from gossamer.crawls.control.steerable import as_process

        as_process(crawl).finish()
        return Done("it ends")


class SetAgent(ProcessRequest, frozen=True, tag="set-agent"):
    """Change settings of one unit of this agent until it ends: its supervisor keeps what is to last."""

    steers = False
    unit: Name
    settings: dict[Name, Any]

    async def act(self, crawl: "Stoppable") -> "Answered":
        """Change them."""
        from gossamer.crawls.control.steerable import as_process

        await as_process(crawl).set(self.unit, self.settings)
        return Done("it is set")


class LendTurns(ControlRequest, frozen=True, tag="lend-turns"):
    """Which addresses this agent may ask, says its supervisor (:mod:`gossamer.agents.lending`)."""

    steers = False
    granted: dict[str, tuple[int, float]]
    """Address -> number of the turn, and the seconds after which it begins."""
    recalled: list[str]
    returned: dict[str, int]
    """Address -> number of the turn of which the supervisor knows that it has ended."""

    async def act(self, crawl: "Steerable") -> "Answered":
        """Take them."""
        from gossamer.crawls.control.steerable import as_agent

        as_agent(crawl).take_turns(self.granted, self.recalled, self.returned)
        return Done("it is known")


class LendRates(ControlRequest, frozen=True, tag="lend-rates"):
    """How much of rates of the whole crawl this agent may use, says its supervisor (:mod:`gossamer.agents.shares`)."""

    steers = False
    shares: dict[str, float]
    """Rate, by its setting's name -> multiple of the even part."""

    async def act(self, crawl: "Steerable") -> "Answered":
        """Go by them."""
        from gossamer.crawls.control.steerable import as_agent

        as_agent(crawl).take_rates(self.shares)
        return Done("it is known")
