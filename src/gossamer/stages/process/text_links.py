"""Links in plain text: whatever begins with `http://` or `https://`.

Place in the flow: a processor for `text/plain`, wired by choice.
"""

import re
from collections.abc import Iterable

from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.visit import Found
from gossamer.reading.document import Document

_URL = re.compile(r"""\bhttps?://[^\s<>"'`\\^{|}]++""", re.IGNORECASE)

#: What ends a sentence, a bracket or emphasis rather than a URL.
_AFTER = ".,;:!?*_)]\u2026\u201d\u00bb"


class TextLinks(Provider[NoSettings]):
    """Finds URLs in plain text. Contract: `processing.Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """The URLs, in order."""
        text = document.markup.decode()
        for match in _URL.finditer(text):
            url = _trimmed(match[0])
            if not url.endswith("://"):
                yield Found(url, "text url")


def _trimmed(url: str) -> str:
    """Without what stands behind it in a sentence; a bracket that was opened in the URL stays."""
    bare = url.rstrip(_AFTER)
    if url[len(bare) : len(bare) + 1] == ")" and bare.count("(") > bare.count(")"):
        return bare + ")"
    return bare
