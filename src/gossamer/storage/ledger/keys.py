"""Keys of the ledger: where everything is found, and why it lies beside what it is asked with.

Every key of a URL or a host begins with a hash of the assignable domain, so that handing a domain to another agent is
one range (design question 5); then comes the host, then the URL, so that the links of a page, which mostly stay on their
host, meet in few blocks (M6: host and URL fingerprint apart).

=========  ==========================================  ===========================================================
family     key                                         value
=========  ==========================================  ===========================================================
seen       domain 4, host 6, URL 10 bytes              empty; where depths are kept, the lowest depth, 2 bytes
documents  the same                                    a DocumentRow
links      the same                                    a visited page's links, where depths are kept
requests   the same                                    what a request that is no plain GET sends, until it is done
hosts      domain 4, host 6, `c`                       the cursors of its lanes
hosts      domain 4, host 6, `s`                       a HostState
hosts      domain 4, host 6, `x`, site                 robots bytes of a site of this host
hosts      domain 4, host 6, `t`, name                 what a watcher has learnt of this host, under its name for it
hosts      domain 4, host 6, `n`, `d` or `i`           tally of the host, the domain of this name, or links to the host
contents   digest                                      the URL that its bytes were first met at
contents   0 or 1, ...                                 fingerprints of texts: :mod:`~gossamer.storage.ledger.seen`
frontier   `q`, domain 4, host 6, level, serial 8      a chunk of tasks
frontier   `l`, milliseconds since the epoch 8, 8      a chunk with the one task that is due then
frontier   `r`, serial 8                               hosts that wait for their turn, in order
frontier   `a`, domain 4, host 6                       the name of a host that is held (its turn has come)
frontier   `w`, milliseconds since the epoch 8, d, h   the name of a host that rests until then
frontier   `s`, domain 4, host 6, family 5             a SetAside: a family of which tasks are set aside
frontier   `t`, domain 4, host 6, family 5, serial 8   its tasks, a level before each chunk
meta       `schema`, `secret`, `state`, `end/FILE`     version; key of the hashes; counters; committed end
meta       `rule`                                      a DomainRule, where it is not the usual one
meta       `own/NAME`                                  a value of another owner that commits with a group
meta       `spaces/OWNER`                              version of the owner's space
spaces     domain 4, host 6, owner, version 1, key     an entry of the owner's space; the owner behind its length, 1 byte
spaces     domain 4, host 6, 0, owner                  bytes that the owner has under this host
meta       `space/` and the same without a host        the same of what belongs to no host
=========  ==========================================  ===========================================================
"""

import math

from xxhash import xxh3_128_digest

from gossamer.values.hosts import DomainRule, domain_point
from gossamer.values.url import host_of

#: Bytes of the fingerprint of a domain, of a host, of a URL within its host. Domains share 4 bytes at the cost of
#: locality only. With 80 bits, a host of 100 million URLs loses one with odds of 4e-9.
DOMAIN_BYTES, HOST_BYTES, URL_BYTES = 4, 6, 10

#: Bytes of what stands for a host in keys.
HOST_ID_BYTES = DOMAIN_BYTES + HOST_BYTES

#: Hosts, and beginnings of URLs, whose id is remembered at once, 210 bytes each; then all are forgotten, which costs each
#: one more look (20 us). Above the 100,000 hosts of a broad crawl, since a table that is cleared in each round is useless.
REMEMBERED_HOSTS, REMEMBERED_BEGINNINGS = 131_072, 32_768

CHUNK, LATER, ROTATION, HELD, RESTING, ASIDE, SHELF = b"q", b"l", b"r", b"a", b"w", b"s", b"t"
CURSOR, STATE, ROBOTS, LEARNT = b"c", b"s", b"x", b"t"
SCHEMA_KEY, SECRET_KEY, STATE_KEY, END_PREFIX, OWN_PREFIX = b"schema", b"secret", b"state", b"end/", b"own/"
RULE_KEY = b"rule"
SPACE_VERSION_PREFIX, COMMON_PREFIX = b"spaces/", b"space/"

#: How keys of tallies end, by what is tallied.
TALLIES = {"host": b"n", "domain": b"d", "linked": b"i"}


_LEVELS = [bytes([level]) for level in range(256)]


class LedgerKeys:
    """Makes keys. XXH3 resists accidents, not people, so it is keyed with a secret of this crawl that no server knows."""

    __slots__ = ("_by_beginning", "_ids", "_rule", "_secret")

    def __init__(self, secret: int, rule: DomainRule | None = None) -> None:
        """Keys under this secret; `rule` says which hosts lie together."""
        self._secret = secret
        self._rule = rule or DomainRule()
        self._ids: dict[str, bytes] = {}
        self._by_beginning: dict[str, bytes] = {}

    def host(self, host: str) -> bytes:
        """The id of a host. The domain's part is the same in every crawl: agents agree on who owns it."""
        known = self._ids.get(host)
        if known is None:
            if len(self._ids) >= REMEMBERED_HOSTS:
                self._ids.clear()
            domain = domain_point(self._rule.assignable(host)).to_bytes(DOMAIN_BYTES)
            name = xxh3_128_digest(host.encode("utf-8", "surrogatepass"), self._secret)
            known = self._ids[host] = domain + name[:HOST_BYTES]
        return known

    def url(self, url: str) -> bytes:
        """The key of a canonical URL, or of the identity of a request, which begins with one."""
        # A beginning that ends at a slash behind `https://` holds the whole authority: it fixes the host.
        slash = url.find("/", 8)
        beginning = url if slash < 0 else url[:slash]
        host = self._by_beginning.get(beginning)
        if host is None:
            if len(self._by_beginning) >= REMEMBERED_BEGINNINGS:
                self._by_beginning.clear()
            host = self._by_beginning[beginning] = self.host(host_of(url))
        return host + xxh3_128_digest(url.encode("utf-8", "surrogatepass"), self._secret)[:URL_BYTES]


def serial_key(kind: bytes, serial: int) -> bytes:
    """A key that sorts by number."""
    return kind + serial.to_bytes(8)


def lane_key(prefix: bytes, level: int, serial: int = 0) -> bytes:
    """The key of a chunk; at level 256, the first key behind all lanes of the prefix."""
    return prefix + _LEVELS[level] + serial.to_bytes(8) if level < 256 else after(prefix)


def time_key(kind: bytes, time: float, rest: bytes) -> bytes:
    """A key that sorts by time. Times before the epoch count as the epoch, times without end as the last that fits."""
    return kind + math.ceil(_milliseconds(time)).to_bytes(8) + rest


def due_key(kind: bytes, now: float) -> bytes:
    """The first key behind all whose time has come."""
    return kind + (math.floor(_milliseconds(now)) + 1).to_bytes(8)


def _milliseconds(time: float) -> float:
    return min(max(time, 0.0) * 1000, 2.0**62)


def time_of(key: bytes) -> float:
    """The time of such a key, in seconds since the epoch."""
    return int.from_bytes(key[1:9]) / 1000


def after(prefix: bytes) -> bytes:
    """The first key behind all that begin with `prefix`."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix[-1] < 255 else after(prefix[:-1])
