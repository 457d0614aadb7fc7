"""How a document came home that a mobile crawler brought: what the archive, the tables and `why` tell of it.

Place in the flow: the crawler manager (:mod:`gossamer.mobile.manager`) makes a visit of each document that came, and this goes with
its response to the commit. Everything in it but the names that home gave was claimed by a stranger.
"""

from typing import Literal

import msgspec

BroughtForm = Literal["whole", "text", "elements", "row"]
"""What of a document came: its bytes; its text; the markup of elements; nothing but a row that says that it is not relevant."""

#: Media types of what came, where that is not the document itself.
PART_TYPES: dict[BroughtForm, str] = {"text": "text/plain", "elements": "text/html"}

#: What digests of parts begin with in ledger and tables: neither a part nor a whole document is the duplicate of the other.
PART_DIGEST = "part:"

#: The relation of URLs out of scope that a crawler met. The page is not known: that would cost more than the URL.
EXTERNAL = "mobile"


class Brought(msgspec.Struct, frozen=True, gc=False):
    """What is known of a document beside its answer."""

    crawler: str
    """The identity that home gave the crawler's journey."""
    runtime: str
    """Address of the runtime that ran it."""
    program: str
    """SHA-256 of the program, hexadecimal."""
    sequence: int
    """Of the batch."""
    form: BroughtForm = "whole"
    digest: str = ""
    """SHA-1 of the document's bytes (base32), as the runtime claims; home checks it where it has the bytes."""
    size: int = 0
    """Bytes of the document, as the runtime claims."""

    @property
    def is_part(self) -> bool:
        """Whether the body is made of the document, and is not the document."""
        return self.form in PART_TYPES
