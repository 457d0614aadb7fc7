"""From the path of a URL to the names of a walk below a root. Pure: the first line of defence of files.

Place in the flow: :mod:`gossamer.mobile.sources.files` walks the names that come from here, one directory at a time.
"""

import os
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from gossamer.contracts.sourcing import Withheld
from gossamer.model.url import path_of

#: Bytes of one name, and names of one path: more than any file system that people serve has.
MAX_NAME = 255
MAX_NAMES = 64

#: Types of files that a web server runs instead of serving them: their source is nobody's business. A name counts if any part
#: behind a dot is one of these, whatever people, editors and version control have put behind it: `index.php.bak`, `index.php~`,
#: `index.php_old`, `index.php,v`, `index.php copy`, `index.php2`.
SERVER_SIDE = frozenset(
    (
        *("php", "php3", "php4", "php5", "php7", "php8", "phtml", "phps", "pht", "phar", "inc", "hh"),
        *("cgi", "fcgi", "pl", "pm", "py", "pyc", "pyo", "wsgi", "rb", "erb", "lua", "tcl", "sh"),
        *("jsp", "jspx", "jspf", "jsw", "jsv", "jhtml", "do", "action", "class", "jar", "war"),
        *("asp", "aspx", "asa", "asax", "ascx", "ashx", "asmx", "axd", "cshtml", "vbhtml", "config", "dll"),
        *("shtml", "shtm", "stm", "ssi", "cfm", "cfml", "cfc"),
    )
)


#: Types that are words as well: with others behind them, as in `plan.do-not-delete.pdf`, they count at the end of a name alone.
_WORDS: Final = frozenset(("do", "action", "class", "config", "inc", "hh", "jar", "war", "pl", "py", "sh"))

#: The type at the beginning of a part, and what stands behind it.
_TYPE: Final = re.compile(r"[\W_]*([a-z0-9]*)(.*)", re.DOTALL)

#: Endings that people and tools put straight behind a type when they set a program aside.
_PUT_ASIDE: Final = re.compile(
    r"(?:\d+|old|bak|back|backup|bk|bck|orig|original|sav|save|saved|copy|tmp|temp|sw[a-z]|new|prev|off)"
)

_CONTROLS: Final = re.compile(rb"[\x00-\x1f\x7f]")


def names_of(url: str) -> tuple[str, ...] | Withheld:
    """The names of a URL's path in order, decoded once; the last one is empty where the path ends with a slash.

    A path that does not name a place below the root, whoever reads it, is withheld as `unsafe_path`.

    Args:
        url: canonical, of http or https.
    """
    path = path_of(url).partition("?")[0].partition("#")[0]
    parts = path.split("/")[1:]
    if len(parts) > MAX_NAMES:
        return Withheld("unsafe_path", f"more than {MAX_NAMES} names in one path")
    names: list[str] = []
    for place, part in enumerate(parts):
        raw = unquote_to_bytes(part)
        if fault := _fault(raw, is_last=place == len(parts) - 1):
            return Withheld("unsafe_path", fault)
        names.append(os.fsdecode(raw))
    return tuple(names)


def _fault(raw: bytes, *, is_last: bool) -> str:
    """Why a decoded name cannot be one name of a file; empty where it can."""
    if not raw:
        return "" if is_last else "an empty name"
    if raw in (b".", b".."):
        return "a name that leads up"
    if b"/" in raw or b"\\" in raw:
        return "a separator inside a name"
    if _CONTROLS.search(raw):
        return "a control character"
    return f"a name of more than {MAX_NAME} bytes" if len(raw) > MAX_NAME else ""


def forbidden(name: str) -> Withheld | None:
    """The refusal that a name alone earns, of a file or a directory; None where it earns none."""
    if name.startswith("."):
        return Withheld("dotfile", f"{name!r} begins with a dot")
    *parts, last = name.lower().rstrip(". ").split(".")[1:] or [""]
    if _is_program(last, is_last=True) or any(_is_program(part, is_last=False) for part in parts):
        return Withheld("server_side", f"a server would run {name!r}, or keep it to itself")
    return None


def _is_program(part: str, *, is_last: bool) -> bool:
    """Whether a part of a name behind a dot is the type of a program, with or without what stands behind a copy of one."""
    match = _TYPE.match(part)
    assert match is not None
    kind, rest = match.groups()
    if kind in SERVER_SIDE:
        return is_last or not rest.strip("~# ") or kind not in _WORDS
    known = SERVER_SIDE - _WORDS if is_last else ()
    return any(kind.startswith(one) and _PUT_ASIDE.fullmatch(kind[len(one) :]) for one in known)
