"""What stands around the links of a page. Pure code, linear in the page."""

import re
from collections.abc import Sequence

from gossamer.contracts.relevance import MOST_AROUND

#: Bytes of markup before and behind a link that are looked at.
REACH = 400

#: Links of a page whose surroundings are looked for: those behind them are judged by their address and text.
MOST_LINKS = 300

_HREF = re.compile(rb"""href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>|<[^<>]*$|^[^<>]*>")
_SPACE = re.compile(r"\s+")


def surroundings(markup: bytes, addresses: Sequence[str]) -> dict[str, str]:
    """The text around the first link to each address.

    Args:
        markup: of the page, as UTF-8 or something near to it.
        addresses: as the page wrote them.
    """
    wanted = {address.encode("utf-8", "replace"): address for address in addresses[:MOST_LINKS]}
    found: dict[str, str] = {}
    for match in _HREF.finditer(markup):
        address = wanted.pop(match[1].replace(b"&amp;", b"&"), None)
        if address is not None:
            found[address] = _text(markup[max(0, match.start() - REACH) : match.end() + REACH])
            if not wanted:
                break
    return found


def _text(markup: bytes) -> str:
    text = _SPACE.sub(" ", _TAG.sub(b" ", markup).decode("utf-8", "replace")).strip()
    middle = len(text) // 2
    return text[max(0, middle - MOST_AROUND // 2) : middle + MOST_AROUND // 2]
