"""The recrawl: when known pages are visited again.

Place in the flow: with `--recrawl`, :mod:`changes` puts a ledger in front of the crawl's own (:mod:`ledger`), which
keeps the time of the next visit with each visit that ends. :mod:`schedule` holds what is due, in a space of the ledger,
and the frontier queues it; :mod:`policies` decide how long a page can wait, by what :mod:`learning` knows of its
changes; the stage `changes` (:mod:`changes`) compares a page with its earlier state.

Promises: politeness bounds the schedule, never the other way round; no page comes too soon and none is forgotten,
whatever is killed.

Open first: :mod:`schedule`, then :mod:`policies`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="recrawl",
    title="Coming back to known pages",
    example="gossamer crawl https://example.org/ --recrawl every=1d --linger forever",
    options="gossamer.recrawl.options:RecrawlOptions",
    wire="gossamer.recrawl.changes:wire",
    wire_where=(),
    forget="gossamer.recrawl.ledger:forget_known",
    commands={
        "changes": Command(
            "gossamer.recrawl.commands:changes", "List the changes of a crawl's pages between visits.", "Ask a crawl"
        ),
        "diff": Command(
            "gossamer.recrawl.commands:diff", "Show how a page differs between two stored versions.", "Ask a crawl"
        ),
    },
    components={
        "changes": "gossamer.recrawl.changes:Changes",
    },
    providers={
        "revisits": "gossamer.recrawl.schedule:RevisitSchedule",
        "compared-texts": "gossamer.recrawl.changes:ComparedTexts",
        "revisit-ledger": "gossamer.recrawl.ledger:RevisitLedger",
        "adaptive": "gossamer.recrawl.policies:GreedyPolicy",
        "every": "gossamer.recrawl.policies:FixedInterval",
        "proportional": "gossamer.recrawl.policies:Proportional",
        "nutch": "gossamer.recrawl.policies:NutchAdaptive",
        "stormcrawler": "gossamer.recrawl.policies:StormCrawlerAdaptive",
    },
)
