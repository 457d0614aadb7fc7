"""Spiders: running handlers that people write for pages, and keeping the mistakes of handlers away from the crawl.

Place in the flow: :mod:`handlers` knows which handler gets which page, and sorts its results; :mod:`running` is the
provider that the process stage (:mod:`spider_stage`) asks, with :mod:`threads` for handlers that block. :mod:`loading` finds
the spider in a file and runs handlers in a process of their own. :mod:`logins` and :mod:`sessions` are protocol modules
in front of the one for http. Their contract is :mod:`gossamer.parsing.contract`.

Open first: :mod:`handlers`, then :mod:`running`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="spiders",
    title="Spiders",
    commands={
        "run": Command("gossamer.spiders.commands:run", "Crawl with a spider of your own.", "Crawl"),
        "shell": Command(
            "gossamer.spiders.commands:shell",
            "Open a Python prompt with one document, to try selectors and processors.",
            "Try",
        ),
    },
    components={"handling-process": "gossamer.spiders.spider_stage:HandlingProcess"},
    providers={
        "log-ins": "gossamer.spiders.logins:EnteringModule",
        "sessions": "gossamer.spiders.sessions:RotatingModule",
        "spider": "gossamer.spiders.running:AbsentSpider",
    },
)
