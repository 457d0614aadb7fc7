"""A crawler in a process of its own that has neither files nor network: pages come to it through a pipe (decision 83).

Place in the flow: a runtime starts :mod:`~gossamer.mobile.confined.process` by
:class:`~gossamer.mobile.confined.keeper.CrawlerKeeper`, and answers its questions out of the owner's sources.
"""
