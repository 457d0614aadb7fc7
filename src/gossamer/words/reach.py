"""The reach of a model through the server: hosts of a list, networks that a person opened, and a budget. Pure.

Place in the flow: :mod:`gossamer.words.tools` asks before each request, and hands the same rules to the crawls that it starts,
whose own guards obey them for links, redirects and addresses that names turn out to have.
"""

import ipaddress
from collections.abc import Sequence

import msgspec

from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.url import canonical, host_of, scheme_of

#: Schemes that a model may ask for: no files of this machine.
SCHEMES = ("http", "https")


class ModelReach(msgspec.Struct, frozen=True):
    """Where a model may go."""

    hosts: tuple[str, ...] = ()
    """Hosts, each with those below it; `*` for every public one."""
    networks: tuple[str, ...] = ()
    """Private networks that may be reached all the same."""

    def checked(self, url: str) -> str:
        """The canonical form of a URL that may be reached.
        Raises UsageError: it may not; says why, and what a person can do."""
        try:
            wanted = canonical(url if "://" in url else f"https://{url}")
        except UnreadableUrl as error:
            raise UsageError(f"{url!r} is no URL: {error}") from None
        if scheme_of(wanted) not in SCHEMES:
            raise UsageError(f"{scheme_of(wanted)}: is out of reach: this server asks for http: and https: alone")
        host = host_of(wanted)
        if not self.hosts:
            raise UsageError(
                "this server reaches no host, only the crawls that it was given; its owner can start it with --host"
            )
        if not any(one in ("*", host) or host.endswith(f".{one}") for one in self.hosts):
            raise UsageError(f"{host} is out of reach: this server reaches {', '.join(self.hosts)}")
        if (host == "localhost" or host.endswith(".localhost")) and not self.networks:
            raise UsageError(f"{host} is this machine, which is out of reach; its owner can start it with --network")
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return wanted  # what its name stands for, the crawl judges when it connects
        allowed = [ipaddress.ip_network(one) for one in self.networks]
        if not address.is_global and not any(address in one for one in allowed if one.version == address.version):
            raise UsageError(f"{host} is not public, so it is out of reach; its owner can start it with --network")
        return wanted

    def options(self) -> list[str]:
        """Options of `gossamer crawl` that keep a crawl within."""
        rules = ["scheme(http, https)"]
        if "*" not in self.hosts:
            rules.append(f"host({', '.join(name for host in self.hosts for name in (host, f'*.{host}'))})")
        rule = " and ".join(rules)
        found = ["--filter", rule, "--filter", f"fetch: {rule}", "--set", "dns.seed_hosts=[]"]
        return [*found, *(part for network in self.networks for part in ("--allow-network", network))]


def read_reach(hosts: Sequence[str], networks: Sequence[str]) -> ModelReach:
    """Where a model may go, as a person wrote it. Raises UsageError: a host or a network is none."""
    names = []
    for host in hosts:
        if host == "*":
            names.append(host)
            continue
        try:
            name = host_of(canonical(f"http://{host.removeprefix('*.')}/"))
        except UnreadableUrl:
            name = ""
        if not name or "/" in host:
            raise UsageError(f"--host {host}: write the name of a host, as docs.example, or '*' for every public one")
        names.append(name)
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise UsageError(f"--network {network}: write a network, as 10.0.0.0/8: {error}") from None
    return ModelReach(tuple(names), tuple(networks))


class Budget:
    """Pages, bytes and seconds that a model may spend while the server runs."""

    def __init__(self, pages: int, size: int, seconds: float) -> None:
        self.pages, self.bytes, self.seconds = pages, size, seconds

    def __repr__(self) -> str:
        return f"<Budget {self.pages} pages, {self.bytes} bytes, {self.seconds:.0f} s>"

    def reserve(self, pages: int, seconds: float) -> tuple[int, float]:
        """Take pages and seconds for one task; what it does not use comes back.

        Returns:
            The bytes that it may fetch, and its seconds.

        Raises UsageError: there is not so much left.
        """
        if pages < 1:
            raise UsageError("ask for 1 page at least")
        if pages > self.pages:
            raise UsageError(f"{pages:,} pages are more than this server has left, which is {self.pages:,}")
        if self.bytes <= 0 or self.seconds < 1:
            raise UsageError("this server has spent its bytes or seconds; its owner can start it again")
        granted = min(seconds, self.seconds)
        self.pages -= pages
        self.seconds -= granted
        return self.bytes, granted

    def give_back(self, pages: int, seconds: float, spent: int) -> None:
        """Return the pages and seconds that a task did not use, and note the bytes that it fetched."""
        self.pages += max(0, pages)
        self.seconds += max(0.0, seconds)
        self.bytes -= spent
