"""The media type of an answer, by its bytes.

Place in the flow: the process stage chooses processors by it; comparisons of texts read archived answers as they were read when
they were fetched.
"""

from gossamer.model.body import beginning
from gossamer.model.mime import sniff
from gossamer.model.visit import XML_TYPES, Response

#: Bytes at the beginning of a document by which its type is told; its readers look at less (`HEADER_BYTES`, `ROOT_BYTES`).
_HEAD = 8_192


def media_type_of(response: Response) -> str:
    """The media type that the bytes of an answer show, in lower case; the one that its server claims where they show none."""
    nosniff = response.header("x-content-type-options").strip().lower() == "nosniff"
    head = beginning(response.document, _HEAD)  # of a large document, a page of it: the rest is read apart
    mime = sniff(head, response.content_type, nosniff=nosniff)
    if mime in XML_TYPES:
        from gossamer.reading.xhtml import type_of_xml  # its parser: most crawls meet no XML

        mime = type_of_xml(head, mime)
    return mime
