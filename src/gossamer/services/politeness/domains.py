"""The registered domain of a host: what one owner answers for, and so a layer of politeness (decision 3)."""

from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from gossamer.services.guard import is_address

#: Hosts whose domain is remembered: a look-up costs some 10 us, and a crawl asks for the same hosts again and again.
REMEMBERED = 65_536


@lru_cache(maxsize=REMEMBERED)
def registered_domain(host: str) -> str:
    """The registered domain of a host name; the host itself where it has none (addresses, public suffixes)."""
    if is_address(host):
        return host
    return _suffixes().privatesuffix(host) or host


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    """The bundled list: read once, when the first name is asked for."""
    return PublicSuffixList()
