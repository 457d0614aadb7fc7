"""The media type of an answer, by its bytes.

Place in the flow: the process stage chooses processors by it; comparisons of texts read archived answers as they were read when
they were fetched.
"""

from gossamer.model.body import beginning
from gossamer.model.mime import of_sitemap, sniff
from gossamer.model.requisites import SITEMAPS
from gossamer.model.visit import XML_TYPES, Response

#: Bytes at the beginning of a document by which its type is told; its readers look at less (`HEADER_BYTES`, `ROOT_BYTES`).
_HEAD = 8_192


def media_type_of(response: Response, relation: str = "") -> str:
    """The media type that the bytes of an answer show, in lower case; the one that its server claims where they show none.

    Args:
        response: with its document.
        relation: how it was found: what robots.txt or an index names as a sitemap is judged by its bytes alone.
    """
    nosniff = response.header("x-content-type-options").strip().lower() == "nosniff"
    head = beginning(response.document, _HEAD)  # of a large document, a page of it: the rest is read apart
    mime = of_sitemap(head) if relation in SITEMAPS else sniff(head, response.content_type, nosniff=nosniff)
    if mime in XML_TYPES:
        from gossamer.reading.xhtml import type_of_xml  # its parser: most crawls meet no XML

        mime = type_of_xml(head, mime)
    return mime
