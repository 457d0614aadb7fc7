"""Triples that nobody wrote as such: links that a page has for browsers, and that RDFa reads as statements about it.

A rule is a predicate; a triple with it is dropped and counted. The rules are a plain list, which whoever reads pages may
change.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from gossamer.rdf.terms import USES_VOCABULARY, XHV, Triple

#: Link types by which pages lead browsers and readers around, in the vocabulary of XHTML; a page that sets a default
#: vocabulary says the same words in that one.
NAVIGATION = frozenset(
    [
        "alternate",
        "appendix",
        "bookmark",
        "chapter",
        "contents",
        "copyright",
        "first",
        "glossary",
        "help",
        "icon",
        "index",
        "last",
        "meta",
        "next",
        "nofollow",
        "noopener",
        "noreferrer",
        "p3pv1",
        "prefetch",
        "preconnect",
        "preload",
        "prev",
        "previous",
        "role",
        "search",
        "section",
        "shortcut",
        "start",
        "stylesheet",
        "subsection",
        "tag",
        "top",
        "ugc",
        "sponsored",
        "up",
        "manifest",
        "modulepreload",
        "dns-prefetch",
        "apple-touch-icon",
        "apple-touch-icon-precomposed",
        "pingback",
    ]
)

#: What is dropped where nothing else is asked for.
DROPPED = frozenset({*(f"{XHV}{term}" for term in NAVIGATION), USES_VOCABULARY})


def dropping(triples: Iterable[Triple], rules: Collection[str], dropped: Counter[str]) -> list[Triple]:
    """The triples that no rule drops.

    Args:
        triples: of one page.
        rules: predicates, as IRIs.
        dropped: counts what was dropped, by predicate.
    """
    kept: list[Triple] = []
    for triple in triples:
        if triple[1] in rules:
            dropped[triple[1]] += 1
        else:
            kept.append(triple)
    return kept
