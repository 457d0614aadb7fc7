"""Conformance suite for relevance: run it over an implementation of your own.

Each check is one promise of `contracts.relevance`. A broken promise raises an AssertionError that names it.
"""

from gossamer.contracts.relevance import LinkWords, PageWords, Relevance

#: Pages and links as the web has them, and as nobody should.
_TEXTS = (
    "",
    "a word",
    "word " * 9_000,
    "\x00\ufffd\u202e",
    "\U0001f600" * 50,
    "日本語の文章です。" * 100,
    "x" * 50_000,
)


def check_relevance(relevance: Relevance) -> None:
    """Check that a relevance keeps its promises."""
    for text in _TEXTS:
        page = PageWords("http://a.test/", text[:200], text)
        score = relevance.page(page)
        assert 0.0 <= score <= 1.0, f"a page's score is {score}"
        links = [LinkWords(f"http://a.test/{n}", text[: 7 * n], text[:200]) for n in range(12)]
        for source in (0.0, score, 1.0):
            scores = relevance.links(links, page, source)
            assert len(scores) == len(links), "one score for each link"
            assert all(0.0 <= one <= 1.0 for one in scores), "a link's score is a number from 0 to 1"
        assert len(relevance.links([], page, score)) == 0, "an empty call has an empty result"
