"""The address guard: which addresses and ports a crawl may talk to. Pure; the resolver asks it before it answers.

What pages link to is written by strangers, and the machine that crawls often stands where strangers may not reach:
beside data bases, behind a firewall, in a cloud with a metadata service (faults 41-53). So the *resolved* address
is judged, after every indirection that a name can hide (design question 8). What opens a closed address is never a link:
a host given as a seed may be loopback or private, and `allow_networks` opens what it lists. Metadata services stay
closed to both.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from gossamer.engine.errors import SettingError
from gossamer.values.patterns import lazy_pattern

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressKind(StrEnum):
    """The purpose of an address. Only `public` ones are open to links."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    LINK_LOCAL = "link-local"
    METADATA = "metadata"
    MULTICAST = "multicast"
    RESERVED = "reserved"
    UNSPECIFIED = "unspecified"


#: Opened by a host that was given as a seed (design question 8).
OPEN_TO_SEEDS = frozenset({AddressKind.LOOPBACK, AddressKind.PRIVATE})

#: Where clouds hand out credentials to all that ask from inside (fault 48): Amazon and most others, its containers,
#: Alibaba, Oracle, Azure's host agent (in a public range), and the IPv6 ones of Amazon and Google.
_CREDENTIALS = (
    "169.254.169.254 169.254.170.2 169.254.170.23 100.100.100.200 192.0.0.192 168.63.129.16 "
    "fd00:ec2::254 fd00:ec2::23 fd20:ce::254"
)
_METADATA = frozenset(map(ip_address, _CREDENTIALS.split()))


def _kinds(rows: Mapping[AddressKind, str]) -> tuple[tuple[Network, AddressKind], ...]:
    return tuple((ip_network(text), kind) for kind, texts in rows.items() for text in texts.split())


#: IANA's special-purpose registry for IPv4 (RFC 6890 and later entries), and fault 41.
_KINDS_4 = _kinds({
    AddressKind.UNSPECIFIED: "0.0.0.0/8",
    AddressKind.LOOPBACK: "127.0.0.0/8",
    AddressKind.PRIVATE: "10.0.0.0/8 100.64.0.0/10 172.16.0.0/12 192.168.0.0/16 198.18.0.0/15",
    AddressKind.LINK_LOCAL: "169.254.0.0/16",
    AddressKind.MULTICAST: "224.0.0.0/4",
    AddressKind.RESERVED: "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4",
})  # fmt: skip

#: The same for IPv6. Outside 2000::/3 nothing is routed, so whatever is not named here and not inside it is reserved.
_KINDS_6 = _kinds({
    AddressKind.UNSPECIFIED: "::/128",
    AddressKind.LOOPBACK: "::1/128",
    AddressKind.PRIVATE: "64:ff9b:1::/48 fc00::/7 fec0::/10",
    AddressKind.LINK_LOCAL: "fe80::/10",
    AddressKind.MULTICAST: "ff00::/8",
    AddressKind.RESERVED: "2001::/23 2001:db8::/32 3fff::/20",
})  # fmt: skip
_GLOBAL_6, _MAPPED, _COMPATIBLE, _NAT64, _6TO4, _TEREDO = map(
    IPv6Network, ("2000::/3", "::ffff:0:0/96", "::/96", "64:ff9b::/96", "2002::/16", "2001::/32")
)

#: Ports that are never dialled (fault 49): the Fetch standard's bad ports, where other protocols could be made to
#: read a request as commands, and data bases and control ports that trust all that reach them. 21 is not among
#: them, since ftp is crawled.
BLOCKED_PORTS = frozenset(
    (
        *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104),
        *(109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515),
        *(526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049),
        *(3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
        *(445, 873, 1433, 1521, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 5432, 5672, 5900, 5984, 6379, 8265),
        *(9042, 9200, 9300, 10250, 10255, 11211, 27017),
    )
)

#: Name endings that only a local network answers for (RFC 6761, 6762; ICANN's `.internal`): refused before any
#: question is asked (fault 50).
_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa", ".onion")

#: A host name as libcurl and every DNS server understand it. The URL parser lets more through; what two parsers could
#: read differently is not asked for (fault 34). Underscores do occur.
_HOST_NAME = lazy_pattern(r"(?=.{1,254}\Z)(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?\Z")


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Networks from text such as `10.0.0.0/8`; a single address is a network of one. Raises SettingError: a text is none."""
    found = []
    for text in texts:
        try:
            found.append(ip_network(text))
        except ValueError as error:
            raise SettingError(f"not a network: {text!r} ({error}); write it as 10.1.0.0/16") from None
    return tuple(found)


def embedded(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses inside a transition address (fault 42): where its packets really go. Empty for others."""
    bits = int(address)
    if address in _MAPPED or address in _NAT64 or (address in _COMPATIBLE and bits > 1):
        return (IPv4Address(bits & 0xFFFFFFFF),)
    if address in _6TO4:
        return (IPv4Address(bits >> 80 & 0xFFFFFFFF),)
    if address in _TEREDO:
        return (IPv4Address(bits >> 64 & 0xFFFFFFFF), IPv4Address(~bits & 0xFFFFFFFF))
    return ()


def _really(address: Address) -> tuple[Address, ...]:
    return (embedded(address) if isinstance(address, IPv6Address) else ()) or (address,)


def _kind(address: Address) -> AddressKind:
    if address in _METADATA:
        return AddressKind.METADATA
    if isinstance(address, IPv4Address):
        return next((kind for network, kind in _KINDS_4 if address in network), AddressKind.PUBLIC)
    special = next((kind for network, kind in _KINDS_6 if address in network), None)
    return special or (AddressKind.PUBLIC if address in _GLOBAL_6 else AddressKind.RESERVED)


def kinds(address: str) -> frozenset[AddressKind]:
    """The purpose of an address, embedded IPv4 extracted; more than one kind only for Teredo. Raises ValueError: it is no
    address, or carries a zone (`fe80::1%eth0`, fault 52)."""
    return frozenset(map(_kind, _really(_parse(address))))


def _parse(address: str) -> Address:
    if "%" in address:
        raise ValueError("an address with a zone")
    return ip_address(address)


@lru_cache(maxsize=4096)
def judge(address: str, allowed_networks: tuple[Network, ...] = (), *, seed: bool = False) -> str:
    """May this crawl connect to `address`? An empty string, or the reason why not.

    The reason names the kind and never the address: it may end up where a page's author can read it (fault 48). `address` is text,
    as a resolver gave it; `--allow-network` opens the `allowed_networks`, and a host that is a `seed` opens loopback and private
    addresses.
    """
    try:
        really = _really(_parse(address))
    except ValueError:
        return "not an address"
    for one in really:
        kind = _kind(one)
        if kind is AddressKind.PUBLIC:
            continue
        listed = any(one.version == network.version and one in network for network in allowed_networks)
        if kind is AddressKind.METADATA or not (listed or (seed and kind in OPEN_TO_SEEDS)):
            return f"{'an' if kind is AddressKind.UNSPECIFIED else 'a'} {kind} address"
    return ""


def judge_port(port: int, *, explicit: bool = False) -> str:
    """May this port be dialled? An empty string, or the reason why not. `port`: the port that is dialled, after any
    `--resolve`; `explicit`: a person asked for this very port: it stands in a seed on loopback, or in `allow_ports`."""
    if not 0 < port < 65536:
        return f"port {port} does not exist"
    return f"port {port} is blocked for crawls" if port in BLOCKED_PORTS and not explicit else ""


def judge_name(host: str, *, seed: bool = False) -> str:
    """May this name be looked up? An empty string, or the reason why not. Addresses are names too, and pass."""
    if is_address(host):
        return ""
    if not _HOST_NAME.match(host):
        return "not a host name"
    bare = host.rstrip(".")
    is_local = "." not in bare or bare.endswith(_LOCAL_SUFFIXES)
    return "a name of the local network" if is_local and not seed else ""


def is_address(host: str) -> bool:
    """The host is written as an IP address, brackets off."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """The address never leaves this machine."""
    try:
        return kinds(address) == {AddressKind.LOOPBACK}
    except ValueError:
        return False


def refusal(addresses: Sequence[str], allowed: tuple[Network, ...], *, seed: bool, only_loopback: bool) -> str:
    """The verdict on a name with all its addresses: one closed address closes the whole name (fault 43)."""
    for address in addresses:
        if reason := judge(address, allowed, seed=seed):
            return reason
    if only_loopback and not all(map(is_loopback, addresses)):
        return "off loopback"
    return ""


def seeded(host: str, port: int, seed_hosts: Collection[str]) -> bool:
    """The host, or the host at this port, was given as a seed: `name` stands for every port, `name:port` for one."""
    return _shown(host) in seed_hosts or port_seeded(host, port, seed_hosts)


def port_seeded(host: str, port: int, seed_hosts: Collection[str]) -> bool:
    """The host was given as a seed with this very port."""
    return place_of(host, port) in seed_hosts


def place_of(host: str, port: int) -> str:
    """A host at one port, as seeds are known by; an IPv6 address wears brackets."""
    return f"{_shown(host)}:{port}"


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
