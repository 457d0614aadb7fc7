"""Fingerprints of texts, by which near-duplicates are found: those of similar texts differ in few bits.

M. Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002, as G. S. Manku, A. Jain and A. Das
Sarma used it on eight billion pages, "Detecting Near-Duplicates for Web Crawling", WWW 2007: 64 bits, and three of them may
differ. The features of a text are its runs of three words, each once.

NumPy is imported on the first fingerprint, so that a plain crawl does without it.
"""

import re
from typing import Any

from xxhash import xxh3_64_intdigest

#: Bits in which the fingerprints of near-duplicates differ at the most (Manku et al., section 5.1.1).
THRESHOLD = 3

#: Words of a run. Runs, unlike words, keep their order.
SHINGLE = 3

#: Words below which a text has no fingerprint: two short texts are alike by chance ("not found", "log in").
MIN_WORDS = 24

#: Words that count, and characters in which they are looked for: a fingerprint of more says the same.
MAX_WORDS = 5_000
MAX_TEXT = 8 * MAX_WORDS

#: Word hashes that are remembered; about 150 bytes each.
REMEMBERED = 50_000

# Of ASCII only letters and digits belong to words; of everything else all.
_ONLY_WORDS = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
# Scripts without spaces: there each character is a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

# Odd multipliers of a multiply-shift mix (Stafford's variant 13 of the finaliser of MurmurHash3), and one for each place.
_PLACES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def fingerprint(text: str) -> int:
    """64 bits for a text; 0 for one that is too short to have any."""
    words = _words(text)
    if len(words) < MIN_WORDS:
        return 0
    import numpy as np

    if len(_hashes) > REMEMBERED:
        _hashes.clear()
    hashes = np.array([_hashes[word] for word in words], dtype=np.uint64)
    runs = np.zeros(len(hashes) - SHINGLE + 1, dtype=np.uint64)
    for place, factor in enumerate(_PLACES):
        runs += hashes[place : place + len(runs)] * np.uint64(factor)
    runs = np.unique(_mixed(runs))
    bits = np.unpackbits(runs.view(np.uint8)).reshape(-1, 64)
    majority = 2 * bits.sum(axis=0, dtype=np.int64) > len(runs)
    return int.from_bytes(np.packbits(majority).tobytes(), "little") or 1


def _mixed(values: Any) -> Any:
    """Every bit of a result depends on every bit of its value."""
    import numpy as np

    values ^= values >> np.uint64(30)
    values *= np.uint64(_MIX[0])
    values ^= values >> np.uint64(27)
    values *= np.uint64(_MIX[1])
    values ^= values >> np.uint64(31)
    return values


def _words(text: str) -> list[bytes]:
    """The words of a text in lower case, without what stands between them."""
    text = text[:MAX_TEXT].lower()
    if not text.isascii() and _UNSPACED.search(text):
        text = _UNSPACED.sub(r" \g<0> ", text)
    return text.encode("utf-8", "replace").translate(_ONLY_WORDS).split()[:MAX_WORDS]


class _Hashes(dict[bytes, int]):
    """Hashes of words, computed once."""

    def __missing__(self, word: bytes) -> int:
        self[word] = found = xxh3_64_intdigest(word)
        return found


_hashes = _Hashes()


def distance(one: int, other: int) -> int:
    """In how many bits two fingerprints differ."""
    return (one ^ other).bit_count()
