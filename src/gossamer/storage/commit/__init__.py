"""The commit: the one place where a visit's consequences become durable.

Place in the flow: the last stage of the ring (:mod:`component`). :mod:`queueing` decides which links become tasks
and keeps the states of hosts, and :mod:`records` has the units that see each visit afterwards.

Open first: :mod:`component`, then :mod:`queueing`.
"""
