"""The story of one URL: how it was found, judged and fetched, and where it is kept.

Place in the flow: `gossamer why` and the dashboard ask here. :mod:`telling` puts a story together out of what the ledger knows,
the traces in log and link table, and the verdicts of the crawl's own filters and robots rules (:mod:`traces`).

Promises: the verdicts are those of now: a rule that was changed since is told as it stands.

Open first: :mod:`telling`.
"""

from gossamer.analysis.why.telling import story_of
from gossamer.analysis.why.traces import Story

__all__ = ["Story", "story_of"]
