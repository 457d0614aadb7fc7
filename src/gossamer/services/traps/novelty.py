"""Does a page say anything that its family has not said before? A sketch of words in a kilobyte.

Words, not bytes: the pages of a trap differ in numbers, dates and the URLs that they show. A word with a digit in it is none.
"""

import re
from collections.abc import Iterable

import msgspec
from xxhash import xxh32_intdigest

#: Bytes of a page that are looked at: trap pages are small, and a large page has said something by then.
LOOKED_AT = 65_536

#: Words of a page that are compared, those with the smallest checksums: a sample that is the same for the same words.
SAMPLE = 64

#: Bits of a sketch, and how many of them may be set before it is forgotten: a fifth of false "seen" is the most it may say.
_BITS = 8_192
_FULL = 1_600

#: A page with at most so many new words says nothing new: a counter spelt out, a name of a month.
NOT_NEW = 1

# At least three letters, no digit beside them; bytes above 127 are letters of some script.
_WORD = re.compile(rb"(?<![0-9A-Za-z\x80-\xff])[A-Za-z\x80-\xff]{3,}(?![0-9A-Za-z\x80-\xff])")


def words(content: bytes, url: str) -> set[bytes]:
    """The words of a page's text, in lower case, without those of its own URL. Linear, whatever the markup."""
    text = b" ".join(piece.partition(b">")[2] for piece in content[:LOOKED_AT].lower().split(b"<"))
    return set(_WORD.findall(text)) - set(_WORD.findall(url.lower().encode("utf-8", "replace")))


class Sketch(msgspec.Struct, array_like=True):
    """The words that a family has said, as set bits."""

    bits: bytearray = msgspec.field(default_factory=lambda: bytearray(_BITS // 8))
    set: int = 0
    """How many bits are set."""

    def __post_init__(self) -> None:
        """Refuse what another program has kept."""
        if len(self.bits) != _BITS // 8:
            raise ValueError("a sketch of another size")

    def is_new(self, said: Iterable[bytes]) -> bool:
        """Whether more than :data:`NOT_NEW` of these words are new; they are remembered."""
        new = 0
        for checksum in sorted(map(xxh32_intdigest, said))[:SAMPLE]:
            place, bit = divmod(checksum % _BITS, 8)
            if not self.bits[place] >> bit & 1:
                self.bits[place] |= 1 << bit
                self.set += 1
                new += 1
        if self.set > _FULL:
            self.bits = bytearray(_BITS // 8)
            self.set = 0
        return new > NOT_NEW
