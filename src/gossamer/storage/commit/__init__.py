"""The commit: the one place where a visit's consequences become durable.

Place in the flow: the last stage of the ring, and the units behind it (:mod:`commit_stage`). :mod:`queueing` decides which links
become tasks and keeps the states of hosts.

Open first: :mod:`commit_stage`, then :mod:`queueing`.
"""
