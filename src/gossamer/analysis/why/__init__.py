"""The story of one URL: where it came from, who judged it and how, when it was asked for, where it is kept (design
promise 5).

:mod:`telling` puts it together out of what the ledger knows, what log and link table tell (:mod:`traces`), and what the
crawl's own filters and robots rules say (:mod:`verdicts`). The verdicts are those of now: a rule that was changed since
is told as it stands.
"""

from gossamer.analysis.why.telling import story_of
from gossamer.analysis.why.traces import Story

__all__ = ["Story", "story_of"]
