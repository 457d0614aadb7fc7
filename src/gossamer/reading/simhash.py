"""Fingerprints of texts, by which near-duplicates are found: those of similar texts differ in few bits.

M. Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002, as G. S. Manku, A. Jain and A. Das
Sarma used it on eight billion pages, "Detecting Near-Duplicates for Web Crawling", WWW 2007: 64 bits, and three of them may
differ. The features of a text are its runs of three words, each once.

All words are hashed together: the hash of a word is a polynomial of its bytes, and those of all beginnings of a text, which
are one sum, hold those of all its words (R. M. Karp, M. O. Rabin, "Efficient randomized pattern-matching algorithms", 1987).
NumPy is imported on the first fingerprint, so that a plain crawl does without it.
"""

import re
from functools import cache
from typing import Any

#: Bits in which the fingerprints of near-duplicates differ at the most (Manku et al., section 5.1.1).
THRESHOLD = 3

#: Words of a run. Runs, unlike words, keep their order.
SHINGLE = 3

#: Words below which a text has no fingerprint: two short texts are alike by chance ("not found", "log in").
MIN_WORDS = 24

#: Bytes of a text that count, some 5,000 words: a fingerprint of more says the same.
MAX_BYTES = 32 << 10

# Of ASCII only letters and digits belong to words; of everything else all.
_ONLY_WORDS = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
# Scripts without spaces: there each character is a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

# The bytes with which their characters begin.
_UNSPACED_LEADS = tuple(bytes([lead]) for lead in (0xE0, 0xE1, *range(0xE3, 0xEA), 0xEF))

# The place where the polynomial is evaluated: odd, so that powers have inverses.
_BASE = 0x9FB21C65
# Odd multipliers of a multiply-shift mix (Stafford's variant 13 of the finaliser of MurmurHash3), and one for each place.
_PLACES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)

#: Runs whose bits are added up eight counts in a word: so many fit into a byte.
_AT_ONCE = 255


def fingerprint(text: str) -> int:
    """64 bits for a text; 0 for one that is too short to have any."""
    text = text[:MAX_BYTES].lower()
    words = text.encode("utf-8", "replace")
    if max(map(words.find, _UNSPACED_LEADS)) >= 0:
        words = _UNSPACED.sub(r" \g<0> ", text).encode("utf-8", "replace")
    hashes = _hashes(words[:MAX_BYTES].translate(_ONLY_WORDS))
    if len(hashes) < MIN_WORDS:
        return 0
    import numpy as np

    hashes = hashes.astype(np.uint64)
    runs = hashes[:-2] * np.uint64(_PLACES[0])
    runs += hashes[1:-1] * np.uint64(_PLACES[1])
    runs += hashes[2:] * np.uint64(_PLACES[2])
    runs = _mixed(runs)
    runs.sort()
    different = np.concatenate((runs[:1], runs[1:][runs[1:] != runs[:-1]]))
    # A row for each run, a byte for each of its bits, the lowest first whatever the machine's order is; then eight bytes at once.
    bits = (
        np.unpackbits(different.astype("<u8", copy=False).view(np.uint8), bitorder="little")
        .view(np.uint64)
        .reshape(-1, 8)
    )
    counts = np.add.reduce(bits[:_AT_ONCE]).view(np.uint8)
    for start in range(_AT_ONCE, len(bits), _AT_ONCE):
        counts = counts + np.add.reduce(bits[start : start + _AT_ONCE]).view(np.uint8).astype(np.uint32)
    return int.from_bytes(np.packbits(counts > len(different) // 2, bitorder="little").tobytes(), "little") or 1


def _hashes(words: bytes) -> Any:
    """A number for each word, the same for the same word; words have one space or more between them."""
    import numpy as np

    codes = np.frombuffer(b" %b " % words, dtype=np.uint8)
    space = codes == ord(" ")
    edges = (space[1:] != space[:-1]).nonzero()[0]
    before, last = edges[::2], edges[1::2]
    powers, inverse = _powers()
    beginnings = codes.astype(np.uint32)
    beginnings *= powers[: len(codes)]
    beginnings.cumsum(out=beginnings)
    return (beginnings[last] - beginnings[before]) * inverse[before]


@cache
def _powers() -> tuple[Any, Any]:
    """The powers of the base modulo 2**32, and their inverses: a quarter of a megabyte."""
    import numpy as np

    def powers(base: int) -> Any:
        every = np.full(MAX_BYTES + 2, base, dtype=np.uint32)
        every[0] = 1
        return np.multiply.accumulate(every, dtype=np.uint32)

    return powers(_BASE), powers(pow(_BASE, -1, 1 << 32))


def _mixed(values: Any) -> Any:
    """Every bit of a result depends on every bit of its value."""
    import numpy as np

    values ^= values >> np.uint64(30)
    values *= np.uint64(_MIX[0])
    values ^= values >> np.uint64(27)
    values *= np.uint64(_MIX[1])
    values ^= values >> np.uint64(31)
    return values


def distance(one: int, other: int) -> int:
    """In how many bits two fingerprints differ."""
    return (one ^ other).bit_count()
