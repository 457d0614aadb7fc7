"""The settings of politeness, the rules for hosts, domains, addresses and the crawl that follow from them, and the list of hosts
and domains that are not asked any more.

Place in the flow: :mod:`provider` has the sheet and makes rules of it; :mod:`gates` goes by them. :mod:`schedule` asks the
blocklist when a host's turn comes: an opt-out takes effect then. An entry closes the name itself and everything below it; an IP
address closes itself alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Annotated, Literal, TypeVar

import msgspec

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.retries import STRIKES, WAITS
from gossamer.values.addresses import is_address
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.hosts import HostTable
from gossamer.values.url import canonical, host_of

V = TypeVar("V")


class Share(msgspec.Struct, frozen=True):
    """The part that all hosts of one domain or address may take together."""

    live: float = 4
    """Requests; infinite is no cap."""
    gap: float = 0.25
    """Seconds between two starts."""


class GateRules(msgspec.Struct, frozen=True):
    """All settings of the layers."""

    pace: PaceRules = PaceRules()
    per_host: int = 1
    domain: Share = Share()
    address: Share = Share()
    domain_on_loopback: Share = Share(gap=0.0)
    address_on_loopback: Share = Share(live=inf, gap=0.0)
    """This machine is ours, and all of a simulated web lives on one address."""
    pages_per_second: float | None = None
    bytes_per_second: float | None = None
    waits: tuple[float, ...] = WAITS
    """Seconds before the second and each further try, of a page or of a host; none is no retry."""
    delays: HostTable[float] = HostTable()
    """Hosts with a delay of their own, in seconds; below 0 it follows the latency."""
    lives: HostTable[int] = HostTable()
    """Hosts with a number of live requests of their own."""
    strikes: int = STRIKES
    """Failures in a row after which a host is only probed."""


def pace_of(host: str, rules: GateRules) -> PaceRules:
    """How fast a host is asked."""
    delay = rules.delays.get(host) if len(rules.delays) else None
    return rules.pace if delay is None else msgspec.structs.replace(rules.pace, delay=None if delay < 0 else delay)


def live_of(host: str, rules: GateRules) -> int:
    """How many requests of a host may be live."""
    return (rules.lives.get(host) if len(rules.lives) else None) or rules.per_host


class PolitenessSheet(Sheet, frozen=True):
    """Settings of :class:`~gossamer.frontier.politeness.provider.HostPoliteness`. All are live."""

    delay: (
        Annotated[
            float,
            setting(
                "Wait this long between two requests to a host; `auto` follows its latency, between floor and cap.",
                unit="s",
                ge=0,
            ),
        ]
        | Literal["auto"]
    ) = "auto"
    factor: Annotated[float, setting("With `auto`, wait this multiple of the host's latency.", ge=0)] = 5.0
    floor: Annotated[float, setting("With `auto`, wait at least this long.", unit="s", ge=0)] = 1.0
    cap: Annotated[
        float, setting("With `auto`, wait at most this long while the host answers without errors.", unit="s", ge=0)
    ] = 30.0
    per_host: Annotated[
        int,
        setting(
            "Allow at most this many requests in flight to one host; use more than 1 only if you own it.",
            unit="requests",
            ge=1,
        ),
    ] = 1
    delays: Annotated[
        dict[str, Annotated[float, msgspec.Meta(ge=0)] | Literal["auto"]],
        setting("Wait this many seconds between two requests to these hosts, as `*.example.org`, instead of `delay`."),
    ] = msgspec.field(default_factory=dict)
    lives: Annotated[
        dict[str, Annotated[int, msgspec.Meta(ge=1)]],
        setting("Have at most this many requests in flight to these hosts, as `*.example.org`, instead of `per_host`."),
    ] = msgspec.field(default_factory=dict)
    domain_delay: (
        Annotated[
            float,
            setting(
                "Wait this long between the starts of two requests to one registered domain; default: 0.25 s off loopback.",
                unit="s",
                ge=0,
            ),
        ]
        | None
    ) = None
    domain_live: Annotated[
        int, setting("Have at most this many requests in flight to one registered domain.", unit="requests", ge=1)
    ] = 4
    ip_delay: (
        Annotated[
            float,
            setting(
                "Wait this long between the starts of two requests to one address; default: 0.25 s off loopback.",
                unit="s",
                ge=0,
            ),
        ]
        | None
    ) = None
    ip_live: Annotated[
        int, setting("Have at most this many requests in flight to one address, off loopback.", unit="requests", ge=1)
    ] = 4
    address_turns: Annotated[
        bool,
        setting(
            "Ask an address only when the supervisor grants a turn, because other agents of the crawl may have hosts "
            "at that address.",
            restart="it is so where several agents share a crawl",
        ),
    ] = False
    domain_turns: Annotated[
        bool,
        setting(
            "Ask a registered domain only when the supervisor grants a turn, because other agents of the crawl may have "
            "hosts of that domain.",
            restart="it is so where several agents share a crawl whose `division` is `host`",
        ),
    ] = False
    rate: (
        Annotated[float, setting("Fetch at most this many pages a second in the whole crawl.", unit="pages/s", gt=0)]
        | None
    ) = None
    bandwidth: (
        Annotated[
            float, setting("Read at most this many bytes of bodies a second in the whole crawl.", unit="bytes/s", gt=0)
        ]
        | None
    ) = None
    retries: Annotated[
        tuple[Annotated[float, msgspec.Meta(ge=0)], ...],
        setting("Wait this many seconds before the second and each further try of a page or of an endpoint."),
    ] = WAITS
    strikes: Annotated[
        int, setting("After this many failures in a row, only probe the host.", unit="failures", ge=1)
    ] = STRIKES
    blocked: Annotated[
        tuple[str, ...], setting("Send no more requests to these hosts and domains, as `example.org`.")
    ] = ()


def rules_of(sheet: PolitenessSheet) -> GateRules:
    """The rules that these settings come to. Without a setting of the user's, domains and addresses on loopback have no gap."""
    usual = GateRules()
    delay = None if sheet.delay == "auto" else sheet.delay
    domain = usual.domain.gap if sheet.domain_delay is None else sheet.domain_delay
    address = usual.address.gap if sheet.ip_delay is None else sheet.ip_delay
    return GateRules(
        pace=PaceRules(delay=delay, factor=sheet.factor, floor=sheet.floor, cap=sheet.cap),
        per_host=sheet.per_host,
        domain=Share(sheet.domain_live, domain),
        address=Share(sheet.ip_live, address),
        domain_on_loopback=Share(sheet.domain_live, sheet.domain_delay or 0.0),
        address_on_loopback=Share(usual.address_on_loopback.live, sheet.ip_delay or 0.0),
        pages_per_second=sheet.rate,
        bytes_per_second=sheet.bandwidth,
        waits=sheet.retries,
        strikes=sheet.strikes,
        delays=_by_host("delays", {host: -1.0 if one == "auto" else one for host, one in sheet.delays.items()}),
        lives=_by_host("lives", sheet.lives),
    )


def _by_host(name: str, values: Mapping[str, V]) -> HostTable[V]:
    try:
        return HostTable(values)
    except UsageError as error:
        raise SettingError(f"setting {name!r}: {error}") from None


# -- the blocklist

#: Characters that no host name contains, though the URL parser might make one of it: parts of URLs, blanks, wildcards.
_UNFIT = frozenset("/?#@\\*% \t\r\n")


class Blocklist:
    """Names that are closed. `rule(host)` costs one look-up for each label of the name."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """A list with these entries.

        Raises:
            UsageError: one of them is no host name.
        """
        self._entries: dict[str, None] = {}
        for entry in entries:
            self.block(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def block(self, entry: str) -> str:
        """Close a host or domain; returns the name as it is compared: lower case, in its ASCII form.

        Raises:
            UsageError: it is no host name.
        """
        name = _name(entry)
        self._entries[name] = None
        return name

    def rule(self, host: str) -> str:
        """The entry that closes this host; empty where none does."""
        entries = self._entries
        if not entries:
            return ""
        name = host
        while name:
            if name in entries:
                return name
            if name is host and is_address(host):
                return ""
            name = name.partition(".")[2]
        return ""

    def lines(self) -> Iterator[str]:
        """The entries as lines, without their ends, in the order in which they came."""
        yield from self._entries


def _name(entry: str) -> str:
    """A host name in the form in which tasks carry it."""
    bare = entry.strip().removeprefix("*.").strip(".")
    if ":" in bare and not bare.startswith("["):
        bare = f"[{bare}]"
    try:
        host = host_of(canonical(f"http://{bare}/")) if bare and not _UNFIT.intersection(bare) else ""
    except UnreadableUrl:
        host = ""
    if not host:
        raise UsageError(f"{entry!r} is not a host or domain; write it as example.org")
    return host
