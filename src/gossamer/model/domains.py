"""The registered domain of a host: what one owner answers for (decision 3). Read by politeness, ledger, scope, cookies and tables.

The bundled list of public suffixes has 10,000 rules, and reading all takes 30 ms of CPU, more than a small crawl's pages. A host is
judged by the rules under its own top-level domain alone, so the library is given those, when the first host of that domain is met.
"""

from functools import cache, lru_cache
from pathlib import Path

from publicsuffixlist import PSLFILE, PublicSuffixList

#: Hosts whose domain is remembered: a look-up costs some 10 us, and a crawl asks for the same hosts again and again.
REMEMBERED = 65_536


@lru_cache(maxsize=REMEMBERED)
def registered_domain(host: str) -> str:
    """The registered domain of a canonical host name; the host itself where it has none (addresses, public suffixes)."""
    if ":" in host or host.rpartition(".")[2].isdigit():
        return host
    return below_suffix(host) or host


def below_suffix(host: str) -> str | None:
    """The public suffix of a host name with one label more: `bbc.co.uk`; None where the name has no such label."""
    found: str | None = _suffixes(_top(host)).privatesuffix(host)
    return found


def _top(host: str) -> str:
    """The top-level domain as the list writes it; empty where the list does not have it."""
    top = host.removesuffix(".").rpartition(".")[2].lower()
    if top.startswith("xn--"):
        try:
            top = top.encode("ascii").decode("idna")
        except UnicodeError:
            return ""
    return top if top in _rules() else ""


@cache  # at most one for each top-level domain of the list, and one for all that are unknown
def _suffixes(top: str) -> PublicSuffixList:
    return PublicSuffixList(_rules().get(top, ()))


@cache
def _rules() -> dict[str, list[str]]:
    """The rules of the bundled list by their top-level domain."""
    rules: dict[str, list[str]] = {}
    for line in Path(PSLFILE).read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("//"):
            top = line[line.rfind(".") + 1 :]
            if top in rules:
                rules[top].append(line)
            else:
                rules[top] = [line]
    return rules
