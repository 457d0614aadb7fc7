"""The keywords of a page: the words and pairs of words that it uses most, without those that every text has.

Place in the flow: the predicate `keywords` of the filter language asks for them at the gates `expand` and `store`. Pure, linear in
the text, and the same for the same page wherever it runs: nothing is learnt of other pages. A word counts more often where it
stands in the title, and a pair of words is a keyword where it comes twice. Words are compared as they stand, without stemming.
"""

import math
from collections import Counter
from itertools import pairwise

from gossamer.reading.terms import MOST_TEXT, words_in

#: Keywords of one page: a page about one thing has its words among the first ten, one about several among these.
MOST_KEYWORDS = 40

#: What an occurrence in the title is worth, in occurrences in the text.
TITLE_WORTH = 4

#: What an occurrence of a pair is worth: its words are counted by themselves as well.
PAIR_WORTH = 1.5

#: Times that a pair has to come: what stands together once is chance.
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
    telling = {word: count for word, count in singles.items() if _says_something(word)}
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


def _says_something(word: str) -> bool:
    return len(word) > 1 and word not in COMMON_WORDS and not word.isdecimal()
