"""Fingerprints of URLs for the sieve, and the table of recent URLs in front of it (row M6).

Host and URL are apart in a fingerprint, so that the URLs of a host lie together in every run.

Twelve bytes: 3 of the host, 9 of the whole URL. Two different URLs of one host share theirs with odds of 2^-72, of two hosts
2^-96 at most. A collision would lose a URL: for 10^8 URLs the odds that any is lost are 1e-6 if all are on one host, and
1e-12 if they are on a million. (With 64 bits in all, 24 of them the host's, a host of a million pages would lose one in
every second crawl.) Hosts that share their 3 bytes lie in one another's place, and nothing else.

In front of the sieve stand recent and popular URLs (:class:`Recent`), in two generations, so that many are let in at once for
little. URLs that are met again move to the young generation; when that is full, the old one is forgotten and the young one
grows old. The popular ones stay, as in a table with reference bits (:mod:`gossamer.storage.seen.caches`), at a third of its
cost where most are new.
"""

from collections.abc import Iterable, Sequence

from xxhash import xxh3_64_digest, xxh3_128_digest

#: Bytes of the host's part: 3, padded in front so that they can be read as a number.
HOST_BYTES = 4

#: Beginnings of URLs whose host part is remembered at once, about 180 bytes each; then all are forgotten.
REMEMBERED = 65_536


class SieveKeys:
    """Fingerprints that were made and not yet put together, in order; 20 bytes each. Putting them together is
    arithmetic on many at a time (:func:`gossamer.storage.seen.finds.numbers`)."""

    __slots__ = ("digests", "hosts")

    def __init__(self) -> None:
        self.hosts = bytearray()
        self.digests = bytearray()

    def __len__(self) -> int:
        return len(self.hosts) // HOST_BYTES

    def add(self, keys: "SieveKeys") -> None:
        self.hosts += keys.hosts
        self.digests += keys.digests


class FingerprintMaker:
    """Makes them. XXH3 resists accidents, not people, so it is keyed with a secret that no server knows."""

    __slots__ = ("_hosts", "_secret")

    def __init__(self, secret: int) -> None:
        self._secret = secret
        self._hosts: dict[str, bytes] = {}

    def of(self, urls: Iterable[str]) -> SieveKeys:
        """The fingerprints of canonical URLs, in order."""
        known, secret, keys = self._hosts, self._secret, SieveKeys()
        digests: list[bytes] = []
        hosts: list[bytes] = []
        beginning, host = "\n", b""
        for url in urls:
            # Links of a page come host by host: mostly it is that of the one before.
            if not url.startswith(beginning):
                # What ends at a slash behind `https://` holds the whole authority.
                slash = url.find("/", 8)
                beginning = url[: slash + 1] if slash > 0 else f"{url}/"
                host = known.get(beginning) or self._host(beginning)
                if slash < 0:
                    beginning = "\n"  # it says nothing of the next one
            hosts.append(host)
            digests.append(xxh3_128_digest(url.encode(), secret))
        keys.hosts += b"".join(hosts)
        keys.digests += b"".join(digests)
        return keys

    def _host(self, beginning: str) -> bytes:
        if len(self._hosts) >= REMEMBERED:
            self._hosts.clear()
        # Without the scheme: the same host by http and https is one place.
        name = beginning.partition("//")[2] or beginning
        key = b"\0" + xxh3_64_digest(name.encode(), self._secret)[: HOST_BYTES - 1]
        self._hosts[beginning] = key
        return key


class Recent:
    """At most `capacity` strings; 130 bytes each where they have 55 characters."""

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, capacity: int) -> None:
        self._half = (capacity + 1) // 2
        self._young: set[str] = set()
        self._old: set[str] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def misses(self, strings: Sequence[str]) -> list[str]:
        """Those that are not here, in order; the others are recent again."""
        young, old = self._young, self._old
        rest = [string for string in strings if string not in young]
        if not old or not rest:
            return rest
        fresh = [string for string in rest if string not in old]
        if len(fresh) < len(rest):
            met = old.intersection(rest)
            old -= met
            self.add(met)
        return fresh

    def add(self, strings: "Sequence[str] | set[str]") -> None:
        self._young.update(strings)
        if len(self._young) >= self._half:
            self._old = self._young
            self._young = set()
