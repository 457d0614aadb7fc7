"""Traps learnt from what pages bring: endless parts of a host that say nothing new (MISSION S13, FAULTS 38, 40).

Place in the flow: the committer shows each visit and asks about its new tasks, the frontier asks about tasks before they go out.
Plain code without I/O and clock. `families` names the part of a host that a URL belongs to, and what is suspicious in it;
`novelty` says whether a page brought new words; `watch` puts both together and decides; `provider` is its door.

A part is a trap only if three things come together: it feeds itself with new URLs, its last pages said nothing that earlier ones
had not, and its URLs have a known shape: dates, identifiers that change, combinations of parameters, paths that grow, or titles of
pages that are not there. Without such a shape a site of equal pages is only a dull site: it is crawled whole.
"""
