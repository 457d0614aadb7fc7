"""All hostile cases in one table, and the faults of the same chapters that no server of ours plays yet.

Place in the flow: `server`, the tests, the command line and the generated documentation read this.
"""

from __future__ import annotations

from typing import Final

from gossamer.simweb.hostile import coding, content, documents, framing, identity
from gossamer.simweb.hostile.case import HostileCase

CASES: Final[tuple[HostileCase, ...]] = (
    *coding.CASES,
    *framing.CASES,
    *content.CASES,
    *documents.CASES,
    *identity.CASES,
)

NOT_PLAYED: Final[dict[str, str]] = {
    "B13": "a dropped SYN: needs a packet filter",
    "B23": "HTTP/2: off by default; tests of the fetcher play its floods on a server of their own",
    "B26": "the same failure on a thousand URLs: belongs to politeness, whose tests play it",
    "C30, C31": "credentials and scope on redirects: need two servers and something to lose",
    "C35": "addresses in disguise: as D41b",
    "D43-D46, D51-D53": "name servers that lie: tests of the resolver have one; proxies and Unix sockets belong to the options",
    "E57": "depth beyond a parser's limit: as E54",
    "E63, E64": "patterns and selectors: what a user writes, not a server",
    "E66": "documents other than HTML are not parsed",
    "E68, E72, E75": "torn archives, previews, floods of copies: belong to the archive, the screens and the simulated web",
    "F86, F89-F97": "rules and paces over many requests: belong to robots.txt and politeness, and to the auditor",
    "G98, revoked": "nobody is asked whether a certificate was revoked; there is no list to look it up in",
    "G99, after the handshake": "renegotiation and key updates without an end: Python's TLS cannot begin them",
    "G101-G103": "who we say that we are, signatures, and proxies: belong to the options; proxies to tests of the fetcher",
}
"""Faults of the chapters A to G that are not here, and why."""
