"""Traps learnt from what pages bring: endless parts of a host that say nothing new.

Place in the flow: the committer shows each visit and asks about its new tasks, the frontier asks about tasks before they go out.
Plain code without I/O and clock. :mod:`families` names the parts of a host that a URL belongs to, and says what is suspicious in
the URL itself. :mod:`memory` has what is known of parts, and the decisions of a person. :mod:`judging` says whether a page has
news, and what the pages of a part say together. :mod:`watch` puts it together and decides. The
host's template (:mod:`likeness`) says what a page has of its own; it finds hosts with two names, too.

Suspected URLs are set aside, not dropped: a site of equal pages is fetched late at worst, and a person can say what it is.

Open first: :mod:`contract`, then :mod:`watch`.
"""
