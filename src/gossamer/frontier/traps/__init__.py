"""Traps learnt from what pages bring: endless parts of a host that say nothing new (row S13, faults 38, 40, 47).

Place in the flow: the committer shows each visit and asks about its new tasks, the frontier asks about tasks before they go out.
Plain code without I/O and clock. `families` names the parts of a host that a URL belongs to, and what is suspicious in it. `shapes`
knows URLs that are suspicious by themselves. `membership` says which parts a task is of, `saying` whether a page has news,
`judging` what the pages of a part say together, `decided` what a person has said. `watch` puts it together and decides; `provider`
is its door. The host's template (:mod:`gossamer.frontier.traps.template`) says what a page has of its own.

What is suspected is set aside, not dropped: a site of equal pages is fetched late at worst, and a person can say what it is.
"""
