"""What is set aside: URLs of a part of a host that looks like a trap. They wait behind everything else, and are not lost."""

import msgspec
from xxhash import xxh3_64_intdigest

#: Bits of a family's identifier: ten hexadecimal digits, which people can copy.
_BITS = 40


class Family(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """URLs of one owner that are alike. New fields go to the end, with a default: kept ones stay readable."""

    owner: str
    """A host; or a registered domain behind `*.`, for hosts that the domain invents."""
    part: str
    """Which of its URLs, as a person reads it: a path with `#` for numbers, `*` for identifiers, `**` for anything."""
    why: str = ""
    """The trap's name, as `trap:calendar`. It is no part of the identity."""
    skipped: int = 0
    """Directories at the beginning of the path that are not masked in `part`."""

    @property
    def key(self) -> bytes:
        """What it is found by, among those of its owner."""
        text = f"{self.owner} {self.part}".encode("utf-8", "surrogatepass")
        return (xxh3_64_intdigest(text) >> 64 - _BITS).to_bytes(_BITS // 8)

    @property
    def id(self) -> str:
        """What a person calls it by."""
        return self.key.hex()

    @property
    def text(self) -> str:
        """Owner and part, as a person reads them: a part is a path, or the name of a shape that URLs of any path have."""
        return f"{self.owner} ({self.part})" if self.part[:1].isalpha() else f"{self.owner}{self.part}"


class SetAside(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A family of which URLs are, or were, set aside. New fields go to the end, with a default."""

    family: Family
    count: int = 0
    """URLs that are set aside."""
    probes: int = 0
    """URLs that were fetched all the same, to see whether there is anything new."""
    last_probes: int = 0
    """Those of them that were fetched when nothing else was left."""
    serial: int = 0
    """The next chunk."""
