"""The specification of a simulated web: one seed and some thirty numbers, all in one frozen value.

Place in the flow: the command line and tests build a `WebSpec`; everything else in this package is
a pure function of it. The request log carries the spec in its first line, so that the auditor needs
the log and nothing else. Each default names the published source that it was taken from; "our
choice" says that there is none.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

MAX_HOSTS = 1 << 23
"""Hosts that a web may have: each also owns one address in 127.128.0.0/9."""

MAX_PAGES = 1 << 36
"""Pages that a web may have: beyond it the integer arithmetic of `draws` would overflow."""


class SpecError(ValueError):
    """A parameter of the web is out of its range: the caller's mistake, said in one line."""


class WebSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a simulated web. Shares are fractions of 1, sizes bytes, times seconds."""

    seed: int = 1
    """Everything random comes from this number."""

    pages: int = 10_000
    """HTML pages with a number of their own; mirror hosts repeat some of them on top."""

    hosts: int = 100
    """Hosts that share those pages. Our choice: the mean of 100 pages a host."""

    host_exponent: float = 1.8
    """Power law of pages per host. Huberman and Adamic, "Growth dynamics of the World-Wide Web",
    Nature 401 (1999): exponents of 1.6 to 1.9."""

    mirror_share: float = 0.1
    """Mirror hosts, as a share of `hosts`. Bharat and Broder, "Mirror, mirror on the Web", WWW8
    (1999): about 10 % of hosts are mirrored to some degree."""

    hosts_per_address: int = 4
    """Hosts that share an address. Our choice: shared hosting is common, its degree varies widely."""

    links: float = 36.8
    """Mean links on a page. Meusel et al., "Graph structure in the Web - revisited", WWW 2014:
    128.7 billion links on 3.5 billion pages."""

    link_exponent: float = 2.72
    """Power law of the out-degree. Broder et al., "Graph structure in the Web", WWW9 (2000)."""

    external_share: float = 0.1
    """Links that leave their host. Cho and Garcia-Molina, "Parallel crawlers", WWW 2002."""

    navigation: int = 18
    """Links that every page of a host repeats (its menu): half of them, as Gibson, Punera and
    Tomkins, "The volume and evolution of web page templates", WWW 2005 found 40-50 % of content to
    be template."""

    branching: int = 8
    """Children of a page in its host's tree, which sets the depth: 8 gives a host of 10,000 pages
    five levels. Our choice."""

    size_median: int = 18 * 1024
    """Median bytes of a page. HTTP Archive, Web Almanac 2024, "Page weight": 18 KB of HTML on the
    median home page (there as transferred; here before compression)."""

    size_sigma: float = 1.1
    """Spread (sigma of the logarithm) of page sizes. Our choice: a tenth of the pages exceed four
    times the median."""

    size_limit: int = 2_000_000
    """The largest page. Our choice."""

    duplicate_share: float = 0.222
    """Pages whose bytes equal another's. Fetterly, Manasse and Najork, "On the evolution of
    clusters of near-duplicate web pages", LA-WEB 2003: 22.2 % virtually identical."""

    near_duplicate_share: float = 0.07
    """Pages that differ from another in a few words: with the above 29.2 %, as in the same paper;
    Broder et al., "Syntactic clustering of the Web", WWW6 (1997) found about a third."""

    redirect_share: float = 0.03
    """Pages that redirect to another of their host. Our choice."""

    gone_share: float = 0.02
    """Linked pages that answer 404 or 410 for ever. Our choice."""

    flaky_share: float = 0.01
    """Pages that answer an error before they heal. Our choice."""

    flaky_failures: int = 1
    """Errors that a flaky page gives (per server process) before it heals. Our choice."""

    flaky_status: int = 503
    """The answer of a flaky page before it heals: 503 with `Retry-After: 1`, as of a busy server, which makes a polite
    crawler slow down for long; or 500 without it, as of a broken page. Our choice."""

    dead_link_share: float = 0.23
    """Pages with a link to nothing. Pew Research Center, "When online content disappears" (2024):
    23 % of news pages have at least one broken link."""

    trap_share: float = 0.1
    """Hosts with a crawler trap (calendar, endless directories, session ids, facets, soft 404).
    Our choice."""

    statements: int = 0
    """Statements of each page in structured data, by turns in RDFa, JSON-LD and microdata: each is one triple. Ridgway 2010,
    table 7, has 0 to 3."""

    plain_robots: bool = False
    """True gives every host a robots.txt that allows everything: for runs that measure speed."""

    compression: bool = False
    """Whether answers are gzipped for crawlers that accept it (dearer to serve)."""

    time_scale: float = 1.0
    """Seconds of the web's own time that pass in a second of ours: 86400 ages it a day a second."""

    epoch: int = 1_767_225_600
    """The web's own time when its server starts, in seconds since 1970: 1 January 2026."""

    latency: float = 0.0
    """Median wait before the first byte of an answer, in seconds; 0 answers at once."""

    latency_sigma: float = 0.8
    """Spread (sigma of the logarithm) of that median over hosts. Our choice."""

    bandwidth: int = 0
    """Bytes a second on one connection; 0 sends as fast as the socket takes them."""

    def __post_init__(self) -> None:
        """Refuse values that no web can have; raises SpecError."""
        for name, (low, most) in _BOUNDS.items():
            value, high = getattr(self, name), min(most, self.pages) if name == "hosts" else most
            if not low <= value <= high:
                raise SpecError(f"{name} must be between {low:g} and {high:g}, not {value:g}")
        names = [f"{kind}_share" for kind in ("duplicate", "near_duplicate", "redirect", "gone", "flaky")]
        shares = [float(getattr(self, name)) for name in names]
        if min(shares) < 0:
            raise SpecError("a share of pages cannot be negative")
        # Only leaves of a host's tree are copies or errors, and 1 - 1/branching of the pages are leaves.
        leaves = 1 - 1 / self.branching
        if sum(shares) > leaves:
            told = f"add up to {sum(shares):g}; at most {leaves:g} of the pages are leaves"
            raise SpecError(f"{', '.join(names)} {told}")


#: The bounds of each number: the least and the most.
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "seed": (0, (1 << 63) - 1),
    "pages": (1, MAX_PAGES),
    "hosts": (1, MAX_HOSTS // 2),
    "host_exponent": (1.05, 10),
    "mirror_share": (0, 0.5),
    "hosts_per_address": (1, MAX_HOSTS),
    "links": (4, 400),
    "link_exponent": (2.05, 10),
    "external_share": (0, 0.9),
    "navigation": (0, 100),
    "branching": (2, 1000),
    "size_median": (500, 10_000_000),
    "size_sigma": (0, 4),
    "size_limit": (1000, 100_000_000),
    "flaky_failures": (1, 1000),
    "flaky_status": (500, 503),
    "trap_share": (0, 1),
    "dead_link_share": (0, 1),
    "statements": (0, 1000),
    "time_scale": (0, 1e9),
    "epoch": (86_400 * 1000, 1 << 33),
    "latency": (0, 3600),
    "latency_sigma": (0, 4),
    "bandwidth": (0, 1 << 40),
}


def spec_from_dict(values: dict[str, Any]) -> WebSpec:
    """Rebuild a spec from plain values; raises SpecError with one line if it cannot be one."""
    try:
        return msgspec.convert(values, WebSpec)
    except msgspec.ValidationError as error:
        raise SpecError(f"the parameters of the simulated web are not valid: {error}") from error


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a web is put on the network. Ports of 0 are chosen by the system, None means none."""

    port: int = 0
    https_port: int | None = None
    dns_port: int | None = None
    log: Path | None = None
    """The file that requests are appended to."""
    every_address: bool = False
    """Listen on all of 127.0.0.0/8 instead of 127.0.0.1 alone."""
    processes: int = 1
    """Server processes that share the ports and the log; only `run` starts more than one."""
    authority: Path | None = None
    """Where to write the certificate that crawlers have to trust for HTTPS."""
