"""Relevance of pages and links for crawls that keep to a topic, from words and example pages (row C8)."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from gossamer.documents.terms import terms_of
from gossamer.documents.text import prose
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.seams import MOST_AROUND, LinkWords, PageWords

# What stands around the links of a page. Pure code, linear in the page.

#: Bytes of markup before and behind a link that are looked at.
REACH = 400

#: Links of a page whose surroundings are looked for: those behind them are judged by their address and text.
MOST_LINKS = 300

_HREF = re.compile(rb"""href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>|<[^<>]*$|^[^<>]*>")
_SPACE = re.compile(r"\s+")


def surroundings(markup: bytes, addresses: Sequence[str]) -> dict[str, str]:
    """The text around the first link to each address.

    Args:
        markup: of the page, as UTF-8 or something near to it.
        addresses: as the page wrote them.
    """
    wanted = {address.encode("utf-8", "replace"): address for address in addresses[:MOST_LINKS]}
    found: dict[str, str] = {}
    for match in _HREF.finditer(markup):
        address = wanted.pop(match[1].replace(b"&amp;", b"&"), None)
        if address is not None:
            found[address] = _text(markup[max(0, match.start() - REACH) : match.end() + REACH])
            if not wanted:
                break
    return found


def _text(markup: bytes) -> str:
    text = _SPACE.sub(" ", _TAG.sub(b" ", markup).decode("utf-8", "replace")).strip()
    middle = len(text) // 2
    return text[max(0, middle - MOST_AROUND // 2) : middle + MOST_AROUND // 2]


# Relevance from words and example pages, without a training run: the shipped :class:`~gossamer.frontier.seams.Relevance`.
#
# Place in the flow: :mod:`gossamer.labs.focused` asks it. A *profile* has the terms that a person named, and those that
# stand out on the example pages (tf-idf). How rare a term is, is learnt from the pages of the crawl as they come, for the terms of
# the profile alone; so a word that every page has soon counts for nothing.


#: Terms that are taken of example pages, the weightiest.
MOST_TERMS = 120

#: A page is wholly relevant that has so many of the weightiest terms once, and this share of the weight of all: of a long profile
#: no page has all terms.
MOST_NEEDED, ENOUGH = 3, 0.25

#: A link has few words: one of these many weightiest terms, as they are in the middle, makes it wholly relevant.
TELLING = 10

#: Pages that were seen before rarity is believed: the first ones are the seeds, which are on topic.
BELIEVED = 20

#: Bytes of an example page that are read.
EXAMPLE_BYTES = 4 << 20


class WordsSheet(Sheet, frozen=True):
    """Settings of :class:`WordsRelevance`."""

    words: Annotated[
        tuple[str, ...],
        setting("Look for these words; a text of several words is split into single words (repeatable)."),
    ] = ()
    pages: Annotated[
        tuple[str, ...],
        setting("Look for the topic of these files (HTML or text) (repeatable).", names="a file"),
    ] = ()


class WordsRelevance(Provider[WordsSheet]):
    """Judges pages by the words of a topic. Contract: `relevance.Relevance`.

    Raises:
        SettingError: there is neither a word nor an example, or a file cannot be read.
    """

    def __init__(self, sheet: WordsSheet | None = None) -> None:
        super().__init__(sheet)
        examples = [terms_of(_read(name)) for name in self.sheet.pages]
        self._profile = profile(self.sheet.words, examples)
        if not self._profile:
            raise SettingError("a topic has no words: name some with --topic, or example pages with --topic-page")
        self._seen: Counter[str] = Counter()
        self._pages = 0

    def page(self, page: PageWords) -> float:
        """By how many terms of the profile it has, the rarer ones more; a term that comes often counts up to twice as much."""
        found = terms_of(f"{page.title}\n{page.text}")
        present = [term for term in self._profile if term in found]
        weights = self._weights()
        self._pages += 1
        self._seen.update(present)
        have = sum(weights[term] * 2 * found[term] / (found[term] + 1) for term in present)
        most = sum(sorted(weights.values(), reverse=True)[:MOST_NEEDED])
        return min(1.0, have / max(most, ENOUGH * sum(weights.values())))

    def links(self, links: Sequence[LinkWords], source: PageWords, score: float) -> Sequence[float]:
        """By its own words, or by what stands around it; half of it is what its page is worth."""
        weights = self._weights()
        telling = sorted(weights.values(), reverse=True)[:TELLING]
        enough = telling[len(telling) // 2]
        made = []
        for link in links:
            own = self._share(f"{link.anchor} {link.url}", weights, enough)
            near = self._share(link.around, weights, enough)
            made.append(min(1.0, 0.5 * max(own, 0.6 * near) + 0.5 * score))
        return made

    def _share(self, text: str, weights: dict[str, float], enough: float) -> float:
        found = terms_of(text)
        return min(1.0, sum(weights[term] for term in self._profile if term in found) / enough)

    def _weights(self) -> dict[str, float]:
        """The profile, less what nearly every page has."""
        if self._pages < BELIEVED:
            return self._profile
        pages = self._pages + 1
        return {
            term: weight * (0.05 + math.log(pages / (self._seen[term] + 1)) / math.log(pages))
            for term, weight in self._profile.items()
        }


def profile(words: Iterable[str], examples: Sequence[Counter[str]]) -> dict[str, float]:
    """Terms and their weights, which add up to 1 for named words, and to 1 for those of examples.

    A term of examples weighs the more, the more of them have it, the more often it comes and the longer it is: short words are
    mostly those that every text has.
    """
    named = sorted({term for text in words for term in terms_of(text)})
    weights = {term: 1 / len(named) for term in named}
    found: dict[str, float] = {}
    for example in examples:
        for term, count in example.items():
            found[term] = found.get(term, 0.0) + (1 + math.log(count)) * min(len(term), 8) / len(examples)
    best = sorted(found, key=lambda term: (-found[term], term))[:MOST_TERMS]
    total = sum(found[term] for term in best)
    for term in best:
        weights[term] = weights.get(term, 0.0) + found[term] / total
    return weights


def _read(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            data = file.read(EXAMPLE_BYTES)
    except OSError as error:
        raise SettingError(f"--topic-page {name}: {error.strerror}") from None
    markup = data.decode("utf-8", "replace")
    return prose(markup.encode(), len(markup)) if "<" in markup[:2_000] else markup
