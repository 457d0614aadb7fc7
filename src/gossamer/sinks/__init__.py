"""Rows of a crawl in databases of the user's own.

Place in the flow: a file of sinks says what goes where (:mod:`mapping`); :mod:`sink` follows the feed of a table and
writes each row once, by the drivers of :mod:`drivers`, or posts it to a web hook. It works in a process beside the
crawl, and nothing in the agent waits for it.

Open first: :mod:`mapping`, then :mod:`sink`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="sinks",
    title="Databases of your own",
    commands={
        "sink": Command("gossamer.sinks.commands:sink", "Check the databases to which a crawl writes rows.", "Take out")
    },
)
