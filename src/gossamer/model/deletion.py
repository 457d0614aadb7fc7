"""The thing that a person has deleted from a crawl: one URL, or a host or domain with everything below it.

Place in the flow: `gossamer delete` makes one of its argument; archive, log, tables and ledger are asked by it which of their
entries go.
"""

import hashlib
from typing import Literal

import msgspec

from gossamer.model.url import host_of


class DeletionTarget(msgspec.Struct, frozen=True):
    """What is deleted."""

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
        """SHA-256 of the name, hexadecimal: tells whoever knows a name whether it was deleted, and nobody else."""
        return hashlib.sha256(self.name.encode("utf-8", "surrogatepass")).hexdigest()
