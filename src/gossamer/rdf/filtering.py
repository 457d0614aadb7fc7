"""Triples that nobody wrote as such: links that a page has for browsers, and that RDFa reads as statements about it.

A *rule* is the IRI of a predicate, or a link type as `rel` has it, such as `stylesheet`. The link type stands for itself in
the vocabulary of XHTML and in each default vocabulary of the page (`vocab`), where the object is a link. A triple to which
a rule applies is dropped, and counted by the rule.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice

from gossamer.model.visit import Triple
from gossamer.rdf.terms import USES_VOCABULARY, XHV

#: What is dropped where nothing else is asked for: link types that serve browsers, feed readers and search engines, those by
#: which readers turn pages, and RDFa's own note of a default vocabulary.
DROPPED = frozenset(
    {
        *[
            "alternate",
            "amphtml",
            "apple-touch-icon",
            "apple-touch-icon-precomposed",
            "bookmark",
            "dns-prefetch",
            "external",
            "icon",
            "manifest",
        ],
        *[
            "mask-icon",
            "modulepreload",
            "next",
            "nofollow",
            "noopener",
            "noreferrer",
            "p3pv1",
            "pingback",
            "preconnect",
            "prefetch",
            "preload",
            "prerender",
        ],
        *["prev", "previous", "search", "shortcut", "sponsored", "stylesheet", "ugc"],
        USES_VOCABULARY,
    }
)


#: Default vocabularies of one page in which link types are looked for; pages have one or two.
MAX_VOCABULARIES = 50


def dropping(triples: Iterable[Triple], rules: Collection[str], dropped: Counter[str]) -> list[Triple]:
    """The triples that no rule drops.

    Args:
        triples: of one page.
        rules: IRIs of predicates, and link types.
        dropped: counts what was dropped, by rule.
    """
    triples = list(triples)
    if not rules:
        return triples
    used = (value for _, predicate, value, _, _ in triples if predicate == USES_VOCABULARY)
    vocabularies = {XHV, *islice(used, MAX_VOCABULARIES)}
    types = [rule for rule in rules if ":" not in rule]
    of_links = {vocabulary + link_type: link_type for vocabulary in vocabularies for link_type in types}
    kept: list[Triple] = []
    for triple in triples:
        predicate = triple[1]
        rule = predicate if predicate in rules else "" if triple[3] else of_links.get(predicate, "")
        if rule:
            dropped[rule] += 1
        else:
            kept.append(triple)
    return kept
