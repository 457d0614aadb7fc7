"""Mobile crawlers: a crawl as one value that can be judged, sent, and run where the data lies (docs/mobile.md).

Place in the flow: :mod:`crawler` is the value, :mod:`reading` reads it from a file, :mod:`wire` makes bytes of it.
:mod:`running` runs it without I/O: it says which URL it wants and is told the answer; :mod:`judging` reads pages by the
functions of the stages. At a site, :mod:`runtime` is the server, with a process for each crawler that has nothing but a pipe,
and :mod:`sources` the pages that its owner serves. At home, :mod:`manager` sends crawlers and judges what they bring before any of
it is believed.

Promises: home accepts only URLs of hosts that it granted; a batch is committed once; nothing that a stranger sends is
run as code.

Open first: :mod:`contract`, then :mod:`crawler`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="mobile",
    title="Mobile crawlers",
    example="gossamer crawl https://example.org/ --mobile --runtime example.org=https://example.org:8443",
    options="gossamer.mobile.options:MobileOptions",
    wire="gossamer.mobile.options:wire",
    wire_where=(),
    forget="gossamer.mobile.manager.lent:forget_lent",
    commands={
        "runtime": Command("gossamer.mobile.commands:runtime", "Run mobile crawlers beside the data.", "Many machines")
    },
    components={"crawlers": "gossamer.mobile.manager.manager:Crawlers"},
    providers={
        "lending-ledger": "gossamer.mobile.manager.lent:LendingLedger",
        "lent-urls": "gossamer.mobile.manager.lent:LentUrls",
        "configured-runtimes": "gossamer.mobile.manager.links:ConfiguredRuntimes",
    },
)
