"""The sources of a runtime, and the rules by which it serves them (docs/runtime.md, decision 82).

Place in the flow: :class:`~gossamer.mobile.sources.opened.Runtime` opens the sources that an owner named.
:mod:`~gossamer.mobile.sources.owner` asks them for the pages of a crawler, behind the rules of the owner's sheet and the site's
robots.txt.
"""
