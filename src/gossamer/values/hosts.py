"""Hosts as names: their registered domain, settings for some of them, and the part of a crawl that a person deletes.

Place in the flow: politeness, ledger, scope, cookies and tables ask for registered domains, which one owner answers for
(decision 3). Units that have settings for single hosts (`[hosts."*.example.org"]` of a configuration) keep a :class:`HostTable`.
`gossamer delete` makes a value of its argument, by which archive, logs, tables and ledger find their entries. Pure.

The bundled list of public suffixes has 10,000 rules, and reading all takes 30 ms of CPU, more than a small crawl's pages. A host is
judged by the rules under its own top-level domain alone, so the library is given those, when the first host of that domain is met.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from weakref import WeakValueDictionary

import msgspec
from publicsuffixlist import PSLFILE, PublicSuffixList
from xxhash import xxh32_intdigest

from gossamer.values.addresses import judge_name
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.url import canonical, host_of

#: Hosts whose domain is remembered: a look-up costs some 10 us, and a crawl asks for the same hosts again and again.
REMEMBERED = 65_536


@lru_cache(maxsize=REMEMBERED)
def registered_domain(host: str) -> str:
    """The registered domain of a canonical host name; the host itself where it has none (addresses, public suffixes)."""
    if ":" in host or host.rpartition(".")[2].isdigit():
        return host
    return below_suffix(host) or host


K = TypeVar("K")
V = TypeVar("V")


class Remembered(dict[K, V]):
    """Answers about hosts and the like: `remembered[host]` gives one, and finds it out the first time. A hit costs no call of
    Python; a table that is full is emptied, which costs each entry one more look."""

    def __init__(self, find: Callable[[K], V], most: int) -> None:
        super().__init__()
        self._find = find
        self._most = most
        _remembering[id(self)] = self

    def __missing__(self, key: K) -> V:
        if len(self) >= self._most:
            self.clear()
        found = self[key] = self._find(key)
        return found


#: The tables of this process, so that they can make room.
_remembering: WeakValueDictionary[int, Remembered[Any, Any]] = WeakValueDictionary()


def forget_remembered() -> None:
    """Empty all tables of this process, because memory is short: they fill again with what is asked for now."""
    registered_domain.cache_clear()
    for table in _remembering.values():
        table.clear()


#: The unit that belongs to one agent as a whole: all hosts of a registered domain, or each host alone.
Division = Literal["domain", "host"]

#: The beginning of the name of a family of hosts: `*.example.com`. A family goes where the hosts of its domain go.
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
    """The rule that a person's settings make. `division`: what is assigned as a whole; `together`: registered domains that stay
    together, as `bbc.co.uk bbc.com`; the first one gives the name. Raises UsageError: a name is no registered domain, or stands
    in two groups."""
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
    """The place of an assignable domain on the circle of all: 32 bits, the same in every process and crawl.

    Keys of the ledger begin with it, so that a stretch of the circle is a range of keys.
    """
    return xxh32_intdigest(domain.encode("utf-8", "surrogatepass"))


def below_suffix(host: str) -> str | None:
    """The public suffix of a host name with one label more: `bbc.co.uk`; None where the name has no such label."""
    top = host.removesuffix(".").rpartition(".")[2].lower()
    if top.startswith("xn--"):
        try:
            top = top.encode("ascii").decode("idna")
        except UnicodeError:
            top = ""
    found: str | None = _suffixes(top if top in _rules() else "").privatesuffix(host)
    return found


@cache  # at most one for each top-level domain of the list, and one for all that are unknown
def _suffixes(top: str) -> PublicSuffixList:
    return PublicSuffixList(_rules().get(top, ()))


@cache
def _rules() -> dict[str, list[str]]:
    """The rules of the bundled list by their top-level domain."""
    rules: dict[str, list[str]] = {}
    for line in Path(PSLFILE).read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("//"):
            rules.setdefault(line[line.rfind(".") + 1 :], []).append(line)
    return rules


# -- values for some hosts: by name, or for all hosts below one


class HostTable(Generic[V]):
    """Host, or `*.` and a host for all below it -> value. The name of a host wins, then the longest pattern."""

    __slots__ = ("_below", "_exact")

    def __init__(self, values: Mapping[str, V] | None = None) -> None:
        """Read the names. Raises UsageError: one is neither; says how it is written."""
        self._exact: dict[str, V] = {}
        self._below: dict[str, V] = {}
        for text, value in (values or {}).items():
            table, name = (self._below, text[2:]) if text.startswith("*.") else (self._exact, text)
            table[given_host(name, text)] = value

    def __len__(self) -> int:
        return len(self._exact) + len(self._below)

    def get(self, host: str) -> V | None:
        """The value for a host, in its canonical form; None where there is none."""
        if host in self._exact:
            return self._exact[host]
        rest = host.partition(".")[2] if self._below else ""
        while rest:
            if rest in self._below:
                return self._below[rest]
            rest = rest.partition(".")[2]
        return None


#: Characters that no host name contains, though the URL parser might make one of it: parts of URLs, blanks, wildcards.
_UNFIT = frozenset("/?#@\\*% \t\r\n")


def given_host(name: str, text: str = "") -> str:
    """The canonical form of a host's name that a person wrote, as `text` where there is more to it. Raises UsageError: it is
    none, or none that any name server could know."""
    bare = f"[{name}]" if ":" in name and not name.startswith("[") else name
    try:
        url = canonical(f"http://{bare}/") if name and not _UNFIT.intersection(name) else ""
    except UnreadableUrl:
        url = ""
    host = host_of(url) if url else ""
    if not host or ":" in bare.rpartition("]")[2] or judge_name(host, seed=True):
        told = (text or name)[:80]
        raise UsageError(
            f"{told!r} is not a host or domain; write example.org, or *.example.org for all hosts below it"
        )
    return host


# -- a deletion: one URL, or a host or domain with everything below it


class DeletionTarget(msgspec.Struct, frozen=True):
    """A URL, host or domain that a person deletes from a crawl."""

    kind: Literal["url", "host"]
    name: str
    """A canonical URL, or a host name in the form in which tasks carry it. A name stands for everything below it too."""

    def has(self, url: str) -> bool:
        """Whether this canonical URL is deleted."""
        if self.kind == "url":
            return url == self.name
        # Most URLs are of other hosts, and need not be taken apart.
        return self.name in url and "://" in url and self.has_host(host_of(url))

    def has_host(self, host: str) -> bool:
        """Whether all of this host is deleted."""
        return self.kind == "host" and (host == self.name or host.endswith(f".{self.name}"))

    @property
    def digest(self) -> str:
        """SHA-256 of the name, hexadecimal: it tells of a known name whether it was deleted, and gives no name away."""
        return hashlib.sha256(self.name.encode("utf-8", "surrogatepass")).hexdigest()
