"""Page requisites: what a browser fetches by itself to show a page. Which relations they have, and how far they lead.

Read by the processors that find them and by the filters, which let them off the scope (`--page-requisites`).
"""

#: `rel` tokens of `link` elements that lead to parts of the page itself. They win over all others: `alternate
#: stylesheet` is a style sheet. Their relation is `link` and the token, as `link stylesheet`.
LINK_TYPES = frozenset(
    {
        "apple-touch-icon",
        "apple-touch-icon-precomposed",
        "icon",
        "manifest",
        "mask-icon",
        "modulepreload",
        "preload",
        "stylesheet",
    }
)

#: What a style sheet names; what a page's own `style` elements and attributes name counts the same.
CSS_IMPORT, CSS_URL = "css import", "css url"

#: Relations of what a page shows. `iframe` and `frame` are documents, not requisites.
RELATIONS = frozenset(
    {
        *(f"link {token}" for token in LINK_TYPES),
        *(f"img {name}" for name in ("src", "srcset")),
        *(f"source {name}" for name in ("src", "srcset")),
        *(f"video {name}" for name in ("src", "poster")),
        *("audio src", "track src", "embed src", "object data", "script src", "input src", "body background"),
        *("link imagesrcset", "image href", "image xlink:href", "use href", "use xlink:href"),
        *(CSS_IMPORT, CSS_URL),
    }
)

_PREFIX = "redirect "

#: Relations of what a redirect leads to: one that moved a requisite says which kind, as `redirect img src`, so that its target is
#: one too.
REDIRECTS = frozenset({"redirect", *(_PREFIX + relation for relation in RELATIONS)})


def redirect_of(relation: str) -> str:
    """The relation of where something that was found by `relation` redirects to."""
    kind = relation.removeprefix(_PREFIX)
    return _PREFIX + kind if kind in RELATIONS else "redirect"


def belongs(relation: str, source_relation: str) -> bool:
    """Whether something found by `relation` on what was itself found by `source_relation` is fetched off scope too.

    One hop from a page; from there on only what style sheets name, and of those only one import deep. So the way ends
    whatever a server says: page, sheet, imported sheet, picture. Redirects are no hops; they have a limit of their own.
    """
    if relation not in RELATIONS:
        return relation != "redirect" and relation in REDIRECTS
    source_kind = source_relation.removeprefix(_PREFIX)
    if relation == CSS_IMPORT:
        return source_kind != CSS_IMPORT
    return relation == CSS_URL or source_kind not in RELATIONS
