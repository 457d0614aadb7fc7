"""The mass communicator of a master: it posts tagged URLs to agents (Hunyadi 2007, section 5.3.3).

Place in the flow: the end of a master's graph. All agents send into one connector, which the marshaler reads. Tagged URLs end here:
each goes into the mail of its agent (:mod:`gossamer.stores.exchange.mail`), and the sender of that agent
(:mod:`gossamer.stages.sending`) takes it from there.
"""

from typing import Annotated

from gossamer.contracts.exchanging import Mail
from gossamer.flow.component import Consumer
from gossamer.flow.ports import In, Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.model.agents import Designated
from gossamer.model.errors import DiskFull


class MassCommunicatorSheet(Sheet, frozen=True):
    """Settings of :class:`MassCommunicator`."""

    disk_wait: Annotated[float, setting("Wait this long before trying a full disk again.", unit="s", gt=0)] = 1.0


class MassCommunicator(Consumer[MassCommunicatorSheet]):
    """Posts each URL to the agent that it is tagged with."""

    inbox: In[Designated]
    mail: Uses[Mail]

    #: As many as the marshaler passes on at once.
    batch = 512

    async def consume_many(self, tasks: list[Designated]) -> None:
        """Post them. While the disk is full this waits, and so do the agents that have sent them."""
        while True:
            try:
                await self.mail.post(tasks)
            except DiskFull:
                self.metrics.count("disk_full")
                await self.clock.sleep(self.sheet.disk_wait)
            else:
                self.metrics.count("posted", len(tasks))
                return
