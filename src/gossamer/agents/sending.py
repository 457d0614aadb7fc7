"""URLs of other agents' hosts go out: one sender for each other agent, from the outbox into a remote connector.

Place in the flow: beside the ring of the crawl. The commit puts URLs into the outbox (:mod:`gossamer.storage.mailbox`); a
sender takes them in batches. A batch has a receipt of its own, which the connector holds until the other agent has committed it.
An agent that has masters has a sender for each of these, and a master has one for each agent.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from gossamer.engine.component import AsynchronousFilter, Producer
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.gate import Receipt, current
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.storage.mailbox.contract import Owing
from gossamer.values.task import Task

#: URLs that are taken from the outbox at once: a frame of the connector has as many.
BATCH = 1_000


class SendUrlsSheet(Sheet, frozen=True):
    """Settings of :class:`SendUrls`."""

    agent: Annotated[str, setting("Send URLs to this agent.", restart="its connector leads to one agent")] = ""


class SendUrls(Producer[SendUrlsSheet]):
    """Sends one other agent the URLs that wait for it in the outbox."""

    outbox: Out[Task]
    owed: Uses[Owing]

    async def produce(self) -> AsyncIterator[Task]:
        """What is owed, for ever. What is on its way when the crawl ends stays owed, and is sent again."""
        while not self.drained:
            batch = await self.owed.take(self.sheet.agent, BATCH)
            receipt = Receipt(partial(self.owed.delivered, batch))
            token = current.set(receipt)
            try:
                for one in batch:
                    yield one.task
            finally:
                current.reset(token)
            receipt.release()


class OtherAgent(AsynchronousFilter[NoSettings]):
    """Stands for another agent in the wiring of this one: that agent takes URLs of its own hosts, and sends URLs of
    ours.

    The other agent is a process of its own with its own wiring. This class is never run: it declares the types of the
    items that pass between the two.
    """

    urls: In[Task]
    found: Out[Task]

    def on_urls(self, task: Task) -> None:
        """A URL of its hosts."""
        raise NotImplementedError("another agent is a process of its own")

    def take_found(self, free: int) -> list[Task]:
        raise NotImplementedError("another agent is a process of its own")
