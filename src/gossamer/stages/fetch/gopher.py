"""The protocol module for gopher (RFC 1436, RFC 4266): menus are lists of links, everything else is a document (row M1).

The first letter of the path is the type of what is there. Menus are documents of the type `application/gopher-menu`, which a
processor reads (:mod:`gossamer.stages.process.listings`).
"""

import mimetypes
from urllib.parse import unquote_to_bytes

import pycurl

from gossamer.model.outcome import Outcome
from gossamer.model.url import path_of
from gossamer.stages.fetch.plain import Ask, PlainModule, PlainSheet, by_code
from gossamer.stages.fetch.transfer import Cut

#: The type of a menu.
MENU = "application/gopher-menu"

#: What the letters mean that are documents; of the others (telnet, errors, printers) nothing can be fetched.
_TYPES = {
    "0": "text/plain",
    "1": MENU,
    "4": "application/mac-binhex40",
    "5": "",
    "6": "text/plain",
    "7": MENU,
    "9": "",
    "g": "image/gif",
    "h": "text/html",
    "I": "",
    "p": "image/png",
    "s": "",
    ";": "",
    "d": "",
}


class GopherModule(PlainModule[PlainSheet]):
    """Fetches gopher URLs."""

    protocol = pycurl.PROTO_GOPHER
    scheme = "gopher"

    def ask(self, url: str) -> Ask | str:
        """The selector, which must not be able to say more than a selector: lines would be orders to other servers."""
        path = path_of(url)
        path = path if len(path) > 1 else "/1"
        letter, selector = path[1], unquote_to_bytes(path[2:])
        search = letter == "7"
        if any(byte < 32 and not (search and byte == 9) for byte in selector) or len(selector) > 1024:
            return "the selector holds control characters"
        if letter not in _TYPES:
            return f"gopher type {letter!r} is not a document"
        guessed = mimetypes.guess_type(path.partition("?")[0])[0]
        return Ask(path, _TYPES[letter] or guessed or "application/octet-stream")

    def verdict(self, url: str, status: int, code: int, message: str) -> Cut:
        """Gopher has no status: what came until the connection was closed is the document."""
        return by_code(code, 0, message, 0) if code else Cut(Outcome.OK, "")
