"""Words, terms, keywords and the fingerprint of a text, and pages that have hardly any. Pure, and linear in what is looked at.

Place in the flow: comparisons of pages ask for marks of words, whatever the markup, without a tree. A focused crawl counts
terms, in any script. The predicate `keywords` asks at the gates `expand` and `store` for the words and pairs of words that a
page uses most. The process stage takes the fingerprint, by which near-duplicates are found: those of similar texts differ
in few bits.

Fingerprints are those of M. Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002, as G. S. Manku,
A. Jain and A. Das Sarma used them on eight billion pages, "Detecting Near-Duplicates for Web Crawling", WWW 2007: 64 bits, and
three of them may differ. The features of a text are its runs of three words, each once. All words are hashed together: the hash
of a word is a polynomial of its bytes, and those of all beginnings of a text, which are one sum, hold those of all its words
(R. M. Karp, M. O. Rabin, "Efficient randomized pattern-matching algorithms", 1987). NumPy is imported on the first fingerprint, so
that a plain crawl does without it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from functools import cache
from itertools import islice, pairwise
from typing import Any
from urllib.parse import unquote_to_bytes

from xxhash import xxh32_intdigest

from gossamer.documents.skim import Skim
from gossamer.values.patterns import lazy_pattern
from gossamer.values.visit import Found

# -- words, as marks that pages are compared by

#: Bytes of a page that are looked at: a page with more has said what it has to say, and its time is bounded.
LOOKED_AT = 131_072

# Letters and digits of ASCII are those of words; bytes above 127 are letters of some script. Everything else divides.
_DIVIDED = bytes(byte if byte > 127 or chr(byte).isalnum() else ord(" ") for byte in range(256))

#: Text behind a tag, up to the next: each byte is looked at once, and what begins like a tag and does not end is left out.
_TEXT = lazy_pattern(rb">([^<]+)")

#: Elements whose content is not read. It may hold random numbers, and does where servers count their visitors.
_UNREAD = ((b"<script", b"</script"), (b"<style", b"</style"))


def words_of(content: bytes) -> set[bytes]:
    """The words of a page's text and title in lower case, without markup, scripts and styles."""
    text = without(content[:LOOKED_AT].lower(), _UNREAD)
    return set(texts_of(text).translate(_DIVIDED).split())


def runs_of(content: bytes, length: int, left_out: Set[bytes]) -> Iterator[bytes]:
    """Every so many words that follow each other in one piece of text, as :func:`words_of` finds them.

    No run goes across a tag: a list whose items only change places has the runs that it had. These words are left out, and numbers.
    """
    for piece in _TEXT.findall(b">" + without(content[:LOOKED_AT].lower(), _UNREAD)):
        words = [word for word in piece.translate(_DIVIDED).split() if word not in left_out and not word.isdigit()]
        for first in range(len(words) - length + 1):
            yield b" ".join(words[first : first + length])


def words_of_urls(urls: Iterable[str]) -> set[bytes]:
    """The words that URLs are made of."""
    text = "\n".join(urls).lower().encode("utf-8", "surrogatepass")
    found = set(text.translate(_DIVIDED).split())
    if b"%" in text:
        found.update(unquote_to_bytes(text).lower().translate(_DIVIDED).split())
    return found


def marks_of(words: Iterable[bytes]) -> set[int]:
    return set(map(xxh32_intdigest, words))


def texts_of(markup: bytes) -> bytes:
    """The texts between tags."""
    return b" ".join(_TEXT.findall(b">" + markup))


def without(text: bytes, elements: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Markup in lower case without elements, each given by how its start and its end begin. One that does not end is the rest."""
    for begin, end in elements:
        start = text.find(begin)
        if start < 0:
            continue
        kept, at = [], 0
        while start >= 0:
            kept.append(text[at:start])
            at = text.find(end, start)
            if at < 0:
                break
            start = text.find(begin, at)
        else:
            kept.append(text[at:])
        text = b" ".join(kept)
    return text


# -- terms

# `re` compiles such patterns when the first text needs them, 1 ms each.
#: Words: letters and digits of any script, three at least, and single characters of scripts that write without spaces.
_WORD = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]{3,40}"


#: Characters of a text that are read: what it is about stands in them, and the time is bounded.
MOST_TEXT = 50_000


def words_in(text: str) -> list[str]:
    """The words of a text's first :data:`MOST_TEXT` characters in order, in lower case.

    A character of a script without spaces is a word of one letter.
    """
    return re.findall(_WORD, text[:MOST_TEXT].lower())


def terms_of(text: str) -> Counter[str]:
    """The words of a text, and pairs of characters in scripts without spaces, with how often each stands there."""
    words = words_in(text)
    found = Counter(word for word in words if len(word) > 1)
    found.update(a + b for a, b in pairwise(words) if len(a) == len(b) == 1)
    return found


# -- keywords
# They are the same for the same page wherever it is judged: nothing is learnt of other pages. A word counts more often where it
# stands in the title, and a pair of words is a keyword where it comes twice. Words are compared as they stand, without stemming.

#: Keywords of one page: a page about one thing has its words among the first ten, one about several among these.
MOST_KEYWORDS = 40

#: The worth of an occurrence in the title, in occurrences in the text.
TITLE_WORTH = 4

#: The worth of an occurrence of a pair: its words are counted by themselves as well.
PAIR_WORTH = 1.5

#: Times that a pair has to come: a pair that stands together once is chance.
FEWEST_PAIRS = 2

_COMMON = {
    "en": "about above after again all also and any are because been before being below between both but can cannot could did does"
    " doing down during each few for from further had has have having her here hers him his how into its itself just may more most"
    " must not now off once one only other our out over own same she should some such than that the their them then there these"
    " they this those through too two under until upon use used using very was were what when where which while who whom why will"
    " with would you your",
    "de": "aber alle als auch auf aus bei bis das dass dem den der des die diese dieser dieses durch ein eine einem einen einer"
    " eines für hat hatte ich ihr ihre ist kann können man mehr mit nach nicht noch nur oder schon sehr sein seine sich sie sind"
    " über und uns unter vom von vor war waren was wenn werden wie wird wir wurde wurden zum zur",
    "fr": "aussi avec aux ces cette comme dans des dont elle elles est être fait font ils les leur leurs mais même nous ont par pas"
    " plus pour que qui sans ses son sont sur tout tous très une vous",
    "es": "como con cuando del desde donde ella ellos entre era esta este esto están fue hasta las los más muy para pero por porque"
    " puede que ser sin sobre son sus también todo todos una uno unos",
    "hu": "amely azon azt azonban csak egy egyik ennek ezt hogy ill illetve így kell lehet meg mert mint minden már még mely nagyon"
    " nem ott pedig sem több után van volna volt vagy",
}

#: Words that say nothing of what a text is about.
COMMON_WORDS = frozenset(word for words in _COMMON.values() for word in words.split())


def keywords(title: str, text: str, most: int = MOST_KEYWORDS) -> tuple[str, ...]:
    """The keywords of a page in lower case, the weightiest first; of equal weight words before pairs, and each in the order of the
    text.

    Args:
        title: its title.
        text: its prose, a block on each line.
        most: how many are wanted.
    """
    heading, words = _words(title) * TITLE_WORTH, _words(text)
    singles, pairs = Counter(heading), Counter(pairwise(heading))
    singles.update(words)
    pairs.update(pairwise(words))
    telling = {
        word: count
        for word, count in singles.items()
        if len(word) > 1 and word not in COMMON_WORDS and not word.isdecimal()
    }
    weights = {word: count * math.log2(len(word)) for word, count in telling.items()}
    for (one, other), count in pairs.items():
        if len(one) == len(other) == 1:
            # Scripts without spaces: two characters are about a word.
            weights[one + other] = weights.get(one + other, 0.0) + count
        elif count >= FEWEST_PAIRS and one in telling and other in telling:
            name = f"{one} {other}"
            weights[name] = count * PAIR_WORTH * math.log2(len(name))
    return tuple(sorted(weights, key=weights.__getitem__, reverse=True)[:most])


def _words(text: str) -> list[str]:
    """The words of a text, with an empty one between two blocks: no pair reaches from one to another."""
    words: list[str] = []
    for block in text[:MOST_TEXT].split("\n"):
        words += words_in(block)
        words.append("")
    return words


#: Words below which a text has no fingerprint: two short texts are alike by chance ("not found", "log in").
MIN_WORDS = 24

#: Bytes of a text that count, some 5,000 words: a fingerprint of more says the same.
MAX_BYTES = 32 << 10

# Scripts without spaces: there each character is a word.
_UNSPACED = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"

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
        words = re.sub(_UNSPACED, r" \g<0> ", text).encode("utf-8", "replace")
    import numpy as np

    # The words, with one space or more between them, and a number for each.
    codes = np.frombuffer(b" %b " % words[:MAX_BYTES].translate(_DIVIDED), dtype=np.uint8)
    space = codes == ord(" ")
    edges = (space[1:] != space[:-1]).nonzero()[0]
    before, last = edges[::2], edges[1::2]
    if len(before) < MIN_WORDS:
        return 0
    powers, inverse = _powers()
    beginnings = codes.astype(np.uint32)
    beginnings *= powers[: len(codes)]
    beginnings.cumsum(out=beginnings)
    hashes = ((beginnings[last] - beginnings[before]) * inverse[before]).astype(np.uint64)
    runs = hashes[:-2] * np.uint64(_PLACES[0])
    runs += hashes[1:-1] * np.uint64(_PLACES[1])
    runs += hashes[2:] * np.uint64(_PLACES[2])
    # Every bit of a result depends on every bit of its value.
    runs ^= runs >> np.uint64(30)
    runs *= np.uint64(_MIX[0])
    runs ^= runs >> np.uint64(27)
    runs *= np.uint64(_MIX[1])
    runs ^= runs >> np.uint64(31)
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


@cache
def _powers() -> tuple[Any, Any]:
    """The powers of the base modulo 2**32, and their inverses: a quarter of a megabyte."""
    import numpy as np

    def powers(base: int) -> Any:
        every = np.full(MAX_BYTES + 2, base, dtype=np.uint32)
        every[0] = 1
        return np.multiply.accumulate(every, dtype=np.uint32)

    return powers(_BASE), powers(pow(_BASE, -1, 1 << 32))


# -- pages that seem to need a browser: shells that hold scripts and hardly anything that a person could read
# Reading a page asks here once its links are known; most pages leave by their number. The crawl counts such pages and says so. It
# does not compare their texts, since there are none: every page of a single-page application is the same shell. A page needs a
# script that runs, and must not lead on by itself (`meta refresh`). Besides, one of three things must hold: it has a few words and
# hardly a link; an element with the identifier of an application, or with a name of its own, is empty, and little stands behind it;
# it asks for JavaScript in a `noscript`. It is not sure: only a browser that renders the page knows.

#: Words and links below which a page is a shell by itself, where a root is empty, and where a `noscript` asks for JavaScript.
BARE_WORDS, BARE_LINKS = 30, 3
ROOT_WORDS, ASKING_WORDS, FEW_LINKS = 120, 200, 5

#: Words that may stand behind such a root: more of them are the content of a page that has an element of its own beside it.
BEHIND = 20

#: Bytes, without scripts, in which a page with prose mostly has so many.
BEGINNING = 16_384

#: Letters that count as one word where none are divided by blanks.
LETTERS = 8

#: Bytes of a `noscript` that are read.
REQUEST = 2_000

#: Elements whose content is not read without a browser, or at all.
UNSEEN = tuple((b"<" + name, b"</" + name) for name in (b"script", b"style", b"noscript", b"template", b"svg"))
UNSEEN += ((b"<!--", b"-->"),)

_LETTERS_OF_WORD = lazy_pattern(r"\w{2,}")
_ROOT = lazy_pattern(
    rb"<(?:div|main|section)\b[^<>]*?\bid\s{0,9}=\s{0,9}[\"']?"
    rb"(?:root|app|main|application|__next|__nuxt|svelte|q-app|mount|container|___gatsby|gatsby|react-root|app-root)"
    rb"[\"'\s>]"
)
_OWN_ELEMENT = lazy_pattern(rb"<([a-z][a-z0-9]{0,30}-[a-z0-9-]{1,60})(?:\s[^<>]*)?>\s*</\1\s*>")
_ASKS = lazy_pattern(
    rb"(?:enable|requires?|need|turn on|without|activ)\W{1,9}(?:\w{1,20}\W{1,9}){0,4}javascript"
    rb"|javascript\W{1,9}(?:\w{1,20}\W{1,9}){0,5}(?:enabled|required|disabled|needed)"
)
#: Types of scripts that run; one without a type does, too.
_TYPES = "module text/javascript application/javascript text/ecmascript application/x-javascript text/babel"
_RUNS = frozenset(["", *_TYPES.split()])


def seems_empty(skim: Skim, found: Iterable[Found]) -> bool:
    """Whether a page seems to need a browser, by its tags and the links that were found on it."""
    links = 0
    for one in found:  # nearly every page leaves here
        if (
            one.relation == "a href"
            and not one.href.strip().lower().startswith(("#", "javascript:"))
            and one.href.strip()
        ):
            links += 1
            if links >= FEW_LINKS:
                return False
    kinds = (script.attributes.get("type", "").partition(";")[0].strip().lower() for script in skim.named(b"script"))
    if not any(kind in _RUNS for kind in kinds):
        return False
    if any(meta.attributes.get("http-equiv", "").strip().lower() == "refresh" for meta in skim.named(b"meta")):
        return False
    body = skim.markup[skim.head_end :]
    # Prose may begin behind a lot of markup: of a page that seems empty, the rest is looked at.
    return _is_shell(body[:LOOKED_AT].lower(), links) and (len(body) <= LOOKED_AT or _is_shell(body.lower(), links))


def _is_shell(body: bytes, links: int) -> bool:
    """Whether a body in lower case, with so many links, has nothing to read."""
    read = without(body, UNSEEN)
    words = _number_of_words(read)
    if words >= ASKING_WORDS:
        return False
    if words < BARE_WORDS and links < BARE_LINKS:
        return True
    root = (_ROOT.search(read) or _OWN_ELEMENT.search(read)) if words < ROOT_WORDS else None
    if root is not None and _number_of_words(b"<" + read[root.end() :]) < BEHIND:
        return True
    start = body.find(b"<noscript")
    return start >= 0 and _ASKS.search(body[start : start + REQUEST].partition(b"</noscript")[0]) is not None


def _number_of_words(markup: bytes) -> int:
    """The number of words between tags, by letters where a script divides none; of a text that has :data:`ASKING_WORDS` in its
    beginning, those in there."""
    for part in (markup[:BEGINNING], markup) if len(markup) > BEGINNING else (markup,):
        # A page may be a megabyte of blanks, which are passed over a hundred times as fast here.
        text = b" ".join(texts_of(part).split()).decode("utf-8", "replace")
        words = len(_LETTERS_OF_WORD.findall(text))
        if words >= ASKING_WORDS:
            return words
    return max(words, sum(1 for _ in islice(filter(str.isalpha, text), ASKING_WORDS * LETTERS)) // LETTERS)
