"""The registered domain of a host: what one owner answers for (decision 3). Read by politeness and by the tables."""

from functools import lru_cache

from publicsuffixlist import PublicSuffixList

#: Hosts whose domain is remembered: a look-up costs some 10 us, and a crawl asks for the same hosts again and again.
REMEMBERED = 65_536


@lru_cache(maxsize=REMEMBERED)
def registered_domain(host: str) -> str:
    """The registered domain of a canonical host name; the host itself where it has none (addresses, public suffixes)."""
    if ":" in host or host.rpartition(".")[2].isdigit():
        return host
    return _suffixes().privatesuffix(host) or host


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    """The bundled list: read once, when the first name is asked for."""
    return PublicSuffixList()
