"""The runtime as a server: takes crawlers of known senders, runs several at once within the owner's sheet, keeps their
results.

Place in the flow: `gossamer runtime --serve` opens a :class:`~gossamer.mobile.runtime.host.RuntimeHost`, which keeps
crawlers and results on disk (:mod:`~gossamer.mobile.runtime.store`) and runs each in a process of its own
(:mod:`~gossamer.mobile.runtime.keeper`). That has neither files nor network: pages come to it through a pipe (decision 83).
Each sender sees it as a :class:`~gossamer.mobile.contract.RuntimeLink`; :mod:`~gossamer.mobile.runtime.serving` is the same over
HTTP (decision 84).
"""
