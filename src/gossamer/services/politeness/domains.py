"""The registered domain of a host: a layer of politeness. The look-up itself is shared, in :mod:`gossamer.model.domains`."""

from gossamer.model.domains import registered_domain

__all__ = ["registered_domain"]
