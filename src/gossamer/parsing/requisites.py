"""Page requisites, which a browser fetches by itself to show an element: pictures, style sheets, scripts, media.

Place in the flow: :mod:`gossamer.parsing.html` asks for each element of a page where such requisites are wanted; the mirror
rewrites what is found here. Pictures that a script moves into place when they come into view count, too: a browser without scripts
would not fetch them, and an archive without them shows empty frames.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from gossamer.parsing.other_links import css_links
from gossamer.values.relations import BACKGROUNDS, LINK_TYPES
from gossamer.values.visit import Found

# In graphics; where both are, both are found.
_SVG = ("href", "xlink:href")

#: Where requisites stand. An `input` has one only if it is an image.
REQUISITES: Mapping[str, tuple[str, ...]] = {
    "link": ("href", "imagesrcset"),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "script": ("src",),
    "input": ("src",),
    "image": _SVG,
    "use": _SVG,
    **dict.fromkeys(BACKGROUNDS, ("background",)),
}

#: The same with the relation of what is found there, but for `link`, whose `rel` says it.
_PLACED = {
    tag: tuple((place, f"{tag} {place}") for place in places if (tag, place) != ("link", "href"))
    for tag, places in REQUISITES.items()
}

#: Elements whose pictures scripts move into place, and the attributes in which they wait: `data-src`, `data-lazy-srcset`,
#: `data-original`, `data-cfsrc` and their kind.
_LAZY = frozenset({"img", "source"})
_WAITING = re.compile(r"data-(?:[a-z0-9]{1,20}-){0,3}(?:[a-z]{0,20}src(?:set)?|original(?:-set)?|lazy(?:-?load)?|echo)")
#: What tells an address from a switch as `data-lazy="true"`, and from a template.
_IS_ADDRESS = re.compile(r"[\t\n\f\r ]*+(?!data:|[#{<\[])[^\t\n\f\r ]*[./?]")

# URL and descriptors of one image candidate (HTML, "parse a srcset attribute"): a comma ends it, but not in parentheses. Blanks are
# those of ASCII alone.
CANDIDATE = re.compile(r"[\t\n\f\r ,]*+([^\t\n\f\r ]++)((?:[^,(]|\([^)]*+(?:\)|\Z))*+)")


def requisites(tag: str, attributes: Mapping[str, str], tokens: Iterable[str], style: bytes) -> Iterator[Found]:
    """The files that a browser would fetch for one element.

    Args:
        tag: its name.
        attributes: names in lower case.
        tokens: of its `rel`, in lower case.
        style: the sheet in a `style` element.
    """
    if tag == "style":
        yield from css_links(style.decode("utf-8", "replace"))
    elif declarations := attributes.get("style"):
        yield from css_links(declarations)
    if tag == "link":
        relation = link_type(tokens)
        if not relation:
            return
        if href := attributes.get("href"):
            yield Found(href, relation)
    elif tag == "input" and (attributes.get("type") or "").lower() != "image":
        return
    elif tag == "image" and "src" in attributes:
        tag = "img"  # the parser's own correction (HTML, 13.2.6.4.7)
    yield from _placed(tag, attributes)


def _placed(tag: str, attributes: Mapping[str, str]) -> Iterator[Found]:
    """The requisites that the attributes of an element name, but for the address of a `link`."""
    places = _PLACED.get(tag, ())
    for place, relation in (*places, *waiting(tag, attributes)) if tag in _LAZY else places:
        value = attributes.get(place)
        if not value:
            continue
        if relation.endswith("srcset"):
            yield from (Found(url, relation) for url in candidates(value))
        elif not value.startswith(("data:", "#")):
            yield Found(value, relation)


def link_type(tokens: Iterable[str]) -> str:
    """The relation of a `link` to a part of its page, as `link icon`; empty for a link to a document."""
    return next((f"link {one}" for one in sorted(LINK_TYPES.intersection(tokens))), "")


def waiting(tag: str, attributes: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """The attributes in which pictures wait for a script, each with the relation of what is found there."""
    if tag not in _LAZY:
        return
    for name, value in attributes.items():
        if name.startswith("data-") and value and _WAITING.fullmatch(name) and _IS_ADDRESS.match(value):
            yield name, f"{tag} data-srcset" if name.endswith("set") else f"{tag} data-src"


def candidates(srcset: str) -> Iterator[str]:
    """The URLs of a `srcset`."""
    place = 0
    while (match := CANDIDATE.match(srcset, place)) is not None:
        url, place = match[1], match.end()
        if url.endswith(","):
            # Commas behind a URL end the candidate: what looks like descriptors is the next one.
            url, place = url.rstrip(","), match.end(1)
        if url and not url.startswith("data:"):
            yield url
