"""The registered domain of a host: what one owner answers for (decision 3). Read by politeness, ledger, scope, cookies and tables.

The bundled list of public suffixes has 10,000 rules, and reading all takes 30 ms of CPU, more than a small crawl's pages. A host is
judged by the rules under its own top-level domain alone, so the library is given those, when the first host of that domain is met.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import msgspec
from publicsuffixlist import PSLFILE, PublicSuffixList
from xxhash import xxh32_intdigest

from gossamer.model.errors import UsageError

#: Hosts whose domain is remembered: a look-up costs some 10 us, and a crawl asks for the same hosts again and again.
REMEMBERED = 65_536


@lru_cache(maxsize=REMEMBERED)
def registered_domain(host: str) -> str:
    """The registered domain of a canonical host name; the host itself where it has none (addresses, public suffixes)."""
    if ":" in host or host.rpartition(".")[2].isdigit():
        return host
    return below_suffix(host) or host


#: What belongs to one agent as a whole: all hosts of a registered domain, or each host alone.
Division = Literal["domain", "host"]

#: What a family of hosts is called by: `*.example.com`. It goes where the hosts of its domain go.
_FAMILY = "*."


class DomainRule(msgspec.Struct, frozen=True):
    """Says which hosts belong together: the *assignable domain* of a host is what one agent has as a whole.

    The rule is fixed when a crawl is made, because the keys of its ledgers begin with a hash of the assignable domain.
    """

    division: Division = "domain"
    together: dict[str, str] = {}
    """Registered domain -> the assignable domain that it is a part of; these stay whole, whatever the division."""

    def assignable(self, host: str) -> str:
        """The assignable domain of a canonical host name. An address, or a name with a single label, is its own."""
        host = host.removeprefix(_FAMILY)
        domain = registered_domain(host)
        return self.together.get(domain) or (host if self.division == "host" else domain)


def domain_rule(division: Division, together: Iterable[str]) -> DomainRule:
    """The rule that a person's settings make.

    Args:
        division: what is assigned as a whole.
        together: registered domains that stay together, as `bbc.co.uk bbc.com`; the first one gives the name.

    Raises:
        UsageError: a name is no registered domain, or stands in two groups.
    """
    table: dict[str, str] = {}
    for group in together:
        names = group.replace(",", " ").lower().split()
        for name in names:
            if registered_domain(name) != name:
                raise UsageError(f"{name!r} is not a registered domain; write {registered_domain(name)!r}")
            if name in table:
                raise UsageError(f"{name!r} stands in two groups of domains; leave it in one")
            table[name] = names[0]
    return DomainRule(division, table)


def domain_point(domain: str) -> int:
    """Where an assignable domain lies on the circle of all: 32 bits, the same in every process and crawl.

    Keys of the ledger begin with it, so that a stretch of the circle is a range of keys.
    """
    return xxh32_intdigest(domain.encode("utf-8", "surrogatepass"))


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
