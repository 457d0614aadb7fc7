"""A folder of files as a site: one URL, one walk from the root, nothing but what a careful web server would show (decision 82).

Place in the flow: :mod:`gossamer.mobile.sources.owner` asks for a URL here. The walk opens one directory after the other, each from
the one before and never through a symbolic link, which is read and walked by its own names. So there is no moment between a check
and its use: what was judged is what is open. Directories are never listed.
"""

import errno
import mimetypes
import os
import posixpath
import re
import stat
from collections import deque
from collections.abc import Iterable
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

from gossamer.engine.errors import refusing
from gossamer.mobile.contract import Withheld
from gossamer.values.body import PIECE, BodyWriter
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.url import path_of
from gossamer.values.visit import Response

# From the path of a URL to the names of a walk: the first line of defence.

#: Bytes of one name, and names of one path: more than any file system that people serve has.
MAX_NAME = 255
MAX_NAMES = 64

#: Types of files that a web server runs instead of serving them: their source is a secret. A name counts if any part
#: behind a dot is one of these, whatever people, editors and version control have put behind it: `index.php.bak`, `index.php~`,
#: `index.php_old`, `index.php,v`, `index.php copy`, `index.php2`.
SERVER_SIDE = frozenset(
    (
        *("php", "php3", "php4", "php5", "php7", "php8", "phtml", "phps", "pht", "phar", "inc", "hh"),
        *("cgi", "fcgi", "pl", "pm", "py", "pyw", "pyc", "pyo", "wsgi", "rb", "erb", "lua", "tcl", "sh"),
        *("jsp", "jspx", "jspf", "jsw", "jsv", "jhtml", "do", "action", "class", "jar", "war"),
        *("asp", "aspx", "asa", "asax", "ascx", "ashx", "asmx", "axd", "cshtml", "vbhtml", "config", "dll"),
        *("shtml", "shtm", "stm", "ssi", "cfm", "cfml", "cfc"),
    )
)

#: Types that are words as well: with others behind them, as in `plan.do-not-delete.pdf`, they count at the end of a name alone.
_WORDS: Final = frozenset(("do", "action", "class", "config", "inc", "hh", "jar", "war", "pl", "py", "sh"))

#: Types that no type of documents begins with: whatever follows one of them, it is a copy.
_UNMISTAKABLE: Final = frozenset(one for one in SERVER_SIDE - _WORDS if len(one) > 2)

#: The type at the beginning of a part, and what stands behind it.
_TYPE: Final = re.compile(r"[\W_]*([a-z0-9]*)(.*)", re.DOTALL)

#: Endings that people and tools put straight behind a type when they set a program aside.
_PUT_ASIDE: Final = re.compile(
    r"(?:old|bak|back|backup|bk|bck|orig|original|sav|save|saved|copy|tmp|temp|sw[a-z]|new|prev|off|dist)?\d*"
)

_CONTROLS: Final = re.compile(rb"[\x00-\x1f\x7f]")


def names_of(url: str) -> tuple[str, ...] | Withheld:
    """The names of the path of a canonical URL in order, decoded once; the last one is empty where the path ends with a slash.
    A path that some reader could take for a place outside the root is withheld as `unsafe_path`."""
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
    for one in SERVER_SIDE if is_last else SERVER_SIDE - _WORDS:
        if kind.startswith(one):
            aside = kind[len(one) :]
            if (_PUT_ASIDE.fullmatch(aside) and (is_last or aside.isalpha())) or (is_last and one in _UNMISTAKABLE):
                return True
    return False


#: Names that are tried for a directory, in the order of common servers.
INDEX_FILES: Final = ("index.html", "index.htm", "index.xhtml")
#: Programs that a server would run for a directory: it has a page, which only that server can make.
_INDEX_PROGRAMS: Final = ("index.php", "index.cgi", "index.pl", "index.jsp", "index.asp", "index.aspx", "index.shtml")
#: The file that closes a directory and all below it: only Apache reads its rules.
_APACHE_RULES: Final = ".htaccess"
#: Symbolic links in one walk, as Linux counts them.
_MAX_LINKS: Final = 40

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_MISSING = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL))
_PRIVATE = frozenset((errno.EACCES, errno.EPERM))
_NO_INDEX = Withheld("no_index", "the directory has no index file, and directories are never listed")
_CHANGED = Withheld("changed", "the file changed its kind while it was opened")

#: Types that not every version of Python knows.
_TYPES: Final = {
    ".atom": "application/atom+xml",
    ".jsonld": "application/ld+json",
    ".md": "text/markdown",
    ".rdf": "application/rdf+xml",
    ".rss": "application/rss+xml",
    ".ttl": "text/turtle",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
    ".xhtml": "application/xhtml+xml",
    ".xml": "application/xml",
    ".gz": "application/gzip",
    ".bz2": "application/x-bzip2",
    ".xz": "application/x-xz",
    ".zst": "application/zstd",
}
_UNKNOWN_TYPE: Final = "application/octet-stream"
#: The table of Python alone: what a machine's administrator added says nothing about this site.
_KNOWN_TYPES = mimetypes.MimeTypes(filenames=()).types_map[True]


class FileSource:
    """Files below a root. Contract: :class:`~gossamer.mobile.contract.PageSource`."""

    def __init__(self, root: Path, *, limit: int, ignores_htaccess: bool = False) -> None:
        """Look once at the root, which is opened anew for each URL, so that a deployment may replace it. A document longer than
        `limit` bytes is cut. Raises UsageError: there is no such directory, or it may not be read."""
        self._root = root
        self._limit = limit
        self._ignores_htaccess = ignores_htaccess
        with refusing(UsageError, f"{root} cannot be served", "; bring it back, or give another place"):
            os.close(self._opened_root())

    def answer(self, url: str) -> Response | Withheld:
        names = names_of(url)
        if isinstance(names, Withheld):
            return names
        try:
            with closing(_Walk(self._opened_root(), self._root, self._ignores_htaccess)) as walk:
                return self._answer(walk, names, url)
        except OSError as error:
            return Response(Outcome.SERVER_ERROR, 500, error=error.strerror or str(error))

    def close(self) -> None:
        """Nothing is held between two answers."""

    def _opened_root(self) -> int:
        return os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _answer(self, walk: "_Walk", names: tuple[str, ...], url: str) -> Response | Withheld:
        wants_directory = names[-1] == ""
        if refused := walk.enter() or walk.follow(names[:-1] if wants_directory else names):
            return refused
        if walk.file is not None:
            return _not_found("a file has nothing below it") if wants_directory else self._read(walk)
        if not wants_directory:
            # To the one with a slash, which relative links on its page need.
            path, mark, query = url.partition("#")[0].partition("?")
            return Response(Outcome.REDIRECT, 301, headers=(("location", f"{path}/{mark}{query}"),))
        for index in INDEX_FILES:
            if walk.has(index):
                return walk.follow((index,)) or self._index(walk)
        programs = [name for name in _INDEX_PROGRAMS if walk.has(name)]
        return Withheld("server_side", f"a server would run {programs[0]!r}") if programs else _NO_INDEX

    def _index(self, walk: "_Walk") -> Response | Withheld:
        """The page of a directory; a directory that is called like one is none."""
        return _NO_INDEX if walk.file is None else self._read(walk)

    def _read(self, walk: "_Walk") -> Response:
        """The file that a walk came to, up to the limit; a large one goes to the disk for temporary files."""
        assert walk.file is not None
        body, left = BodyWriter(), self._limit
        # A buffer is made for each read, and a large one of the system costs more than the read of a page.
        step = min(PIECE, walk.size + 1)
        while left and (piece := os.read(walk.file, min(step, left))):
            body.write(piece)
            left -= len(piece)
        is_cut = not left and bool(os.read(walk.file, 1))
        headers = (
            ("content-type", media_type(walk.name)),
            ("last-modified", formatdate(max(0, walk.modified), usegmt=True)),
        )
        outcome = Outcome.TRUNCATED if is_cut else Outcome.OK
        return Response(outcome, 200, headers=headers, body=body.take(), cut="length" if is_cut else "")


class _Walk:
    """Open directories from the root down to where the walk stands, and the file that it ended at."""

    def __init__(self, root: int, root_path: Path, ignores_htaccess: bool) -> None:
        self._open = [root]
        self._root_path = root_path
        self._ignores_htaccess = ignores_htaccess
        self._links = 0
        self.file: int | None = None
        self.name = ""
        """Of the file."""
        self.modified = 0.0
        """When the file was changed, in seconds since the epoch."""
        self.size = 0
        """Bytes of the file when it was opened; it may grow meanwhile."""

    def close(self) -> None:
        for number in self._open if self.file is None else (*self._open, self.file):
            os.close(number)

    def enter(self) -> Withheld | None:
        """The refusal that the directory earns in which the walk stands."""
        if not self._ignores_htaccess and self.has(_APACHE_RULES):
            return Withheld("htaccess", f"{_APACHE_RULES} has rules for it that only Apache reads")
        return None

    def has(self, name: str) -> bool:
        """Whether something of this name is where the walk stands; a name that cannot be looked at counts as there."""
        try:
            os.stat(name, dir_fd=self._open[-1], follow_symlinks=False)
        except OSError as error:
            return error.errno not in _MISSING
        return True

    def follow(self, names: Iterable[str]) -> Response | Withheld | None:
        """Walk on; the answer if the walk ends before its goal."""
        ahead = deque(names)
        while ahead:
            name = ahead.popleft()
            if name in ("", "."):
                continue  # of a symbolic link: no URL has them
            if name == "..":
                if len(self._open) == 1:
                    return Withheld("outside", "a symbolic link leads out of the root")
                os.close(self._open.pop())
                continue
            ended = forbidden(name) or self._step(name, ahead)
            if ended is not None:
                return ended
        return None

    def _step(self, name: str, ahead: deque[str]) -> Response | Withheld | None:
        try:
            mode = os.stat(name, dir_fd=self._open[-1], follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                return self._link(name, ahead)
            if stat.S_ISDIR(mode):
                self._open.append(os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=self._open[-1]))
                if os.fstat(self._open[-1]).st_mode & 0o005 != 0o005:
                    return Withheld("private", f"not every user may read and enter the directory {name!r}")
                return self.enter()
            if not stat.S_ISREG(mode):
                return Withheld("special", f"{name!r} is neither a file nor a directory")
            if ahead:
                return _not_found("a file has nothing below it")
            number = os.open(name, _FLAGS, dir_fd=self._open[-1])
            self.file, self.name = number, name
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode):
                return _CHANGED
            if not found.st_mode & stat.S_IROTH:
                return Withheld("private", f"not every user may read the file {name!r}")
            self.modified, self.size = found.st_mtime, found.st_size
            return None
        except OSError as error:
            if error.errno in _MISSING:
                return _not_found("there is no such file")
            if error.errno == errno.ELOOP:
                return _CHANGED
            if error.errno in _PRIVATE:
                return Withheld("private", f"the runtime may not read {name!r}")
            raise

    def _link(self, name: str, ahead: deque[str]) -> Withheld | None:
        """Put the names of a link's target in front of those that are left."""
        self._links += 1
        if self._links > _MAX_LINKS:
            return Withheld("outside", f"more than {_MAX_LINKS} symbolic links in one path")
        target = os.readlink(name, dir_fd=self._open[-1])
        if target.startswith("/"):
            below = _below(target, self._root_path)
            if below is None:
                return Withheld("outside", f"the symbolic link {name!r} leads out of the root")
            while len(self._open) > 1:
                os.close(self._open.pop())
            target = below
        ahead.extendleft(reversed(target.split("/")))
        return None


def _below(target: str, root: Path) -> str | None:
    """An absolute target, as names below the root; None where it lies elsewhere, or where only its other links would tell."""
    if ".." in target.split("/"):
        return None
    plain = posixpath.normpath(target)
    for base in (str(root.resolve()), str(root.absolute())):
        if plain == base or plain.startswith(base.rstrip("/") + "/"):
            return plain[len(base.rstrip("/")) :]
    return None


def media_type(name: str) -> str:
    ending = posixpath.splitext(name)[1].lower()
    return _TYPES.get(ending) or _KNOWN_TYPES.get(ending) or _UNKNOWN_TYPE


def _not_found(why: str) -> Response:
    return Response(Outcome.CLIENT_ERROR, 404, error=why)
