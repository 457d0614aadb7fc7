"""All hostile cases in one table, and the faults of the same chapters that no server of ours plays yet.

Place in the flow: `server`, the tests, the command line and the generated documentation read this.
"""

from __future__ import annotations

from typing import Final

from gossamer.simweb.hostile import coding, content, framing
from gossamer.simweb.hostile.case import Case

CASES: Final[tuple[Case, ...]] = (*coding.CASES, *framing.CASES, *content.CASES)

NOT_PLAYED: Final[dict[str, str]] = {
    "B13": "a dropped SYN: needs a packet filter",
    "B23": "HTTP/2: off by default; tests of the fetcher have a server of their own",
    "B26": "the same failure on a thousand URLs: belongs to the frontier",
    "C30, C31": "credentials and scope on redirects: need two servers and something to lose",
    "C33, C35-C37, C40": "spellings of URLs, refreshes, soft 404s: belong to URLs and links, and to the simulated web",
    "D43-D47, D51-D53": "name servers that lie, proxies, Unix sockets: belong to the resolver and the options",
    "E57, E60-E64, E66, E68-E70, E72-E77, E79": "parsers, archive, tables and screens: belong where those are",
    "F83, F85-F87, F89-F97": "rules and paces over many requests: wait for robots.txt and politeness",
    "G100-G103": "downgrades, identity and proxies: belong to the fetcher and the options",
}
"""Faults of the chapters A to G that are not here, and why."""
