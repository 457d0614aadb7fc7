"""A copy of the records for one more subscriber: stands in the records arrow, and hands each record on twice.

Place in the flow: behind the commit, where a wiring has more than one subscriber of records; each has a connector of its own, so
none takes items from another. :func:`gossamer.assembly.subscribing.with_subscriber` puts it there.
"""

from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out
from gossamer.flow.sheet import NoSettings
from gossamer.model.visit import Record


class CopyRecords(Filter[NoSettings]):
    """Sends every record to two subscribers, at the pace of the slower one."""

    inbox: In[Record]
    outbox: Out[Record]
    copy: Out[Record]

    async def filter_many(self, records: list[Record]) -> None:
        """Hand on some records, in order."""
        await self.outbox.send_many(records)
        await self.copy.send_many(records)
