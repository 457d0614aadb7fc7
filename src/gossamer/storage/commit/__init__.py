"""The commit: the one place where a visit's consequences become durable.

Open first: :mod:`component`, then :mod:`queueing`.
"""
