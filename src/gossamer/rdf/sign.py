"""Whether a page can hold structured data, and where: asked before anything is parsed, because most pages hold none.

JSON-LD stands in scripts and OpenGraph in `meta` elements, which the skim took one by one. Attributes of RDFa and microdata
may stand on any element: behind the head, the search by which the skim goes through the page finds the first of them or shows that
there are none, at no cost of its own. It errs to the safe side: a page that writes *of* such attributes is looked at more closely,
and nothing is found.
"""

import msgspec
import re2

from gossamer.reading import signs
from gossamer.reading.document import Document
from gossamer.reading.skim import Tag

_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_BYTES.never_capture = True
_BYTES.case_sensitive = False
_OF_RDFA = re2.compile(signs.RDFA, _BYTES)
_ITEM = b"itemscope"
_OF_MICRODATA = re2.compile(_ITEM, _BYTES)
_JSON_LD = re2.compile(rb"ld\+json", _BYTES)


class Sign(msgspec.Struct, frozen=True):
    """What a page can hold."""

    json_ld: list[Tag]
    """Its scripts of that type."""
    rdfa: bool
    microdata: bool
    head_only: bool
    """What there may be of RDFa and microdata stands before the body."""

    @property
    def is_nothing(self) -> bool:
        """There is nothing to read."""
        return not (self.json_ld or self.rdfa or self.microdata)


def everything(document: Document) -> Sign:
    """What stands for no sign at all: the page may hold anything, anywhere."""
    return Sign(_scripts(document), rdfa=True, microdata=True, head_only=False)


def _scripts(document: Document) -> list[Tag]:
    return [tag for tag in document.skim.named(b"script") if tag.raw and _JSON_LD.search(tag.raw) is not None]


def sign_of(document: Document) -> Sign:
    """What a page shows of structured data before it is parsed."""
    markup, skim = document.markup, document.skim
    scripts = _scripts(document)
    if skim.has_sign:
        rdfa, microdata = _OF_RDFA.search(markup) is not None, _OF_MICRODATA.search(markup) is not None
        return Sign(scripts, rdfa=rdfa, microdata=microdata, head_only=False)
    head = markup[: skim.head_end]
    # A head is short: looking at it in lower case costs a tenth of a second search.
    return Sign(scripts, rdfa=_OF_RDFA.search(head) is not None, microdata=_ITEM in head.lower(), head_only=True)
