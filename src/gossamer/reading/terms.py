"""The terms of a text, in any script: what a topic and a page's keywords are made of.

Place in the flow: relevance of a focused crawl and :mod:`gossamer.reading.keywords` count them. Pure; linear in the text.
"""

import re
from collections import Counter
from itertools import pairwise

#: Words: letters and digits of any script, three at least, and single characters of scripts that write without spaces.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]{3,40}")


#: Characters of a text that are read: what it is about stands in them, and the time is bounded.
MOST_TEXT = 50_000


def words_in(text: str) -> list[str]:
    """The words of a text's first :data:`MOST_TEXT` characters in order, in lower case.

    A character of a script without spaces is a word of one letter.
    """
    return WORD.findall(text[:MOST_TEXT].lower())


def terms_of(text: str) -> Counter[str]:
    """The words of a text, and pairs of characters in scripts without spaces, with how often each stands there."""
    words = words_in(text)
    found = Counter(word for word in words if len(word) > 1)
    found.update(a + b for a, b in pairwise(words) if len(a) == len(b) == 1)
    return found
