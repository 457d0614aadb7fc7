"""Triples that nobody wrote as such: links that a page has for browsers, and that RDFa reads as statements about it.

A *rule* is the IRI of a predicate, a link type as `rel` has it, such as `stylesheet`, or `meta:NAME` for a `meta` element. The
link type stands for itself in the vocabulary of XHTML and in each default vocabulary of the page (`vocab`), where the object
is a link. A triple to which a rule applies is dropped, and counted by the rule. The same rules say which `meta` and `link`
elements are no items (:mod:`gossamer.rdf.meta`).
"""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import islice

from gossamer.model.visit import Triple
from gossamer.rdf.terms import USES_VOCABULARY, XHV

#: `meta` elements that speak to browsers and to single services, and say nothing of the page.
FOR_BROWSERS = tuple(
    f"meta:{name}"
    for name in [
        "apple-mobile-web-app-capable",
        "apple-mobile-web-app-status-bar-style",
        "apple-mobile-web-app-title",
        "color-scheme",
        "csrf-param",
        "csrf-token",
        "facebook-domain-verification",
        "format-detection",
        "google",
        "google-site-verification",
        "googlebot",
        "bingbot",
        "handheldfriendly",
        "mobile-web-app-capable",
        "mobileoptimized",
        "msapplication-config",
        "msapplication-tilecolor",
        "msapplication-tileimage",
        "msvalidate.01",
        "next-head-count",
        "p:domain_verify",
        "referrer",
        "robots",
        "theme-color",
        "viewport",
        "yandex-verification",
    ]
)

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
        *FOR_BROWSERS,
    }
)


#: Default vocabularies of one page in which link types are looked for; pages have one or two.
MAX_VOCABULARIES = 50
#: Characters of the vocabularies of a page up to which it is remembered what they make of link types.
MAX_REMEMBERED = 500


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
    vocabularies = [XHV, *islice(used, MAX_VOCABULARIES)]
    is_usual = sum(map(len, vocabularies)) < MAX_REMEMBERED
    of_links = (_remembered if is_usual else _link_types)(frozenset(rules), frozenset(vocabularies))
    kept: list[Triple] = []
    for triple in triples:
        predicate = triple[1]
        rule = predicate if predicate in rules else "" if triple[3] else of_links.get(predicate, "")
        if rule:
            dropped[rule] += 1
        else:
            kept.append(triple)
    return kept


def _link_types(rules: frozenset[str], vocabularies: frozenset[str]) -> dict[str, str]:
    """Predicate -> the link type that it stands for."""
    types = [rule for rule in rules if ":" not in rule]
    return {vocabulary + link_type: link_type for vocabulary in vocabularies for link_type in types}


#: The pages of a site have the same vocabularies.
_remembered = lru_cache(maxsize=64)(_link_types)
