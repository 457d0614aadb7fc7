"""Work on a crawl beside running it: one module for each operation that is more than a query.

Place in the flow: commands and dashboard call these. :mod:`why` tells the story of a URL, :mod:`verifying` compares files with the
ledger. :mod:`rewriting` is the one way in which a crawl at rest is changed, and :mod:`removals` says what goes.
:mod:`reprocess` runs the stages between fetch and commit over the archive, :mod:`replaying` shows an archived page as it looked.

Promises: a crawl at work is never rewritten; a rewriting that a kill interrupts is finished by the next command.

Open first: the operation's own module.
"""
