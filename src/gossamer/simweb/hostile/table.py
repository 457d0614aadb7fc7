"""All hostile cases in one table, and the faults of the same chapters that no server of ours plays yet.

Place in the flow: `server`, the tests, the command line and the generated documentation read this.
"""

from __future__ import annotations

from typing import Final

from gossamer.simweb.hostile import coding, content, framing
from gossamer.simweb.hostile.case import Case

CASES: Final[tuple[Case, ...]] = (*coding.CASES, *framing.CASES, *content.CASES)

NOT_PLAYED: Final[dict[str, str]] = {
    "A3": "a Brotli bomb: needs an encoder",
    "B13": "a dropped SYN: needs a packet filter",
    "B23": "HTTP/2: the fetcher speaks HTTP/1.1 alone",
    "B26": "the same failure on a thousand URLs: the frontier's matter, tested there",
    "C30, C31": "credentials and scope on redirects: no credentials are kept yet; scope is tested with the filters",
    "C33, C35-C37, C40": "spellings of URLs and refreshes: tested with the URL and the link stage, and in the simulated web",
    "D43-D47": "name servers that lie: tested with the resolver",
    "E60-E64, E66": "XML, JSON and user patterns: with the processors that read them",
    "F85-F97": "rules and paces over many requests: with robots.txt and politeness",
    "G100-G103": "downgrades, identity and proxies: tested with the fetcher and the options",
}
"""Faults of the chapters A to G that are not here, and why."""
