"""Which file of a mirror a document becomes. Pure: URLs in, names out, the same for the same URLs.

A name is made of the URL: host, path, query, an extension by which a browser that opens the file knows what it is. URLs are
strangers' words: a name holds nothing that leads out of the folder, that a file system refuses, or that two files share, even where
upper and lower case are the same.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

from gossamer.model.url import endpoint_of, path_of, scheme_of

#: Bytes of one part of a name, of a query in it, and of a whole name. File systems take 255 and 4,096.
MAX_PART = 120
_MAX_QUERY = 60
MAX_NAME = 700

#: Extension of what has another, or none: browsers know files by it.
EXTENSIONS = {
    "text/html": (".html", ".htm"),
    "application/xhtml+xml": (".html", ".htm"),
    "text/css": (".css",),
    "text/javascript": (".js", ".mjs"),
    "application/javascript": (".js", ".mjs"),
    "image/svg+xml": (".svg",),
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/gif": (".gif",),
    "image/webp": (".webp",),
    "application/pdf": (".pdf",),
    "application/json": (".json",),
    "text/plain": (".txt",),
}

#: Of these only a name without extension gets one: their own say more (`.md`, `.map`, `.webmanifest`).
_MILD = frozenset(("text/plain", "application/json"))

#: Letters beside ASCII's letters and digits that stand in a name as they are.
_KEPT = frozenset("-_.,+=@~!()[]; ")

#: Names of devices, on systems that have such.
_DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{name}{at}" for name in ("com", "lpt") for at in range(10))))


def mirror_names(documents: Iterable[tuple[str, str]]) -> dict[str, str]:
    """URL -> name of its file, with `/` between the parts.

    Args:
        documents: canonical URLs, each with its media type.
    """
    wanted = [(url, _name(url, mime)) for url, mime in sorted(documents)]
    folders = {folder for _, name in wanted for folder in _folders(name)}
    taken: set[str] = set()
    found = {}
    for url, plain in wanted:
        name, number = plain, 0
        while _key(name) in folders or _key(name) in taken:
            number += 1
            name = _told_apart(name, url, number)
        taken.add(_key(name))
        found[url] = name
    return found


def _key(name: str) -> str:
    """Equal for names that some file system takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _folders(name: str) -> Iterable[str]:
    parts = _key(name).split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _name(url: str, mime: str) -> str:
    host, port = endpoint_of(url)
    usual = {"http": 80, "https": 443}.get(scheme_of(url))
    folder = _part(host.strip("[]") or scheme_of(url)) + (f"+{port}" if port and port != usual else "")
    path, _, query = path_of(url).partition("?")
    parts = [_part(unquote(part)) for part in path.split("/")[1:-1] if part]
    last = _part(unquote(path.rpartition("/")[2])) if path.rpartition("/")[2] else "index.html"
    if query:
        last = _with_ending(last, f"@{_cut(_clean(unquote(query)), _MAX_QUERY)}", mime)
    name = "/".join((folder, *parts, _extended(last, mime)))
    if len(name.encode()) <= MAX_NAME:
        return name
    return "/".join((folder, "long", _digest(url, 16) + _extended("", mime)))


def _with_ending(last: str, ending: str, mime: str) -> str:
    """Something put before the extension that a browser needs."""
    stem, dot, extension = last.rpartition(".")
    if dot and stem and f".{extension.lower()}" in EXTENSIONS.get(mime, ()):
        return f"{stem}{ending}.{extension}"
    return f"{last}{ending}"


def _extended(last: str, mime: str) -> str:
    known = EXTENSIONS.get(mime, ())
    # Text that is called `.html` is no markup, and a browser would take it for some.
    has_one = "." in last.strip(".") and not last.lower().endswith(EXTENSIONS["text/html"])
    if not known or last.lower().endswith(known) or (mime in _MILD and has_one):
        return last
    return last + known[0]


def _part(text: str) -> str:
    """One part of a name: never empty, never `.` or `..`, never hidden, no longer than :data:`MAX_PART`."""
    clean = _clean(text)
    if clean.split(".")[0].lower() in _DEVICES or not clean:
        clean = f"_{clean}"
    if clean.startswith((".", " ", "-", "~")):
        clean = f"_{clean[1:]}"
    return _cut(clean, MAX_PART)


def _clean(text: str) -> str:
    clean = "".join(one if _stands(one) else "_" for one in unicodedata.normalize("NFC", text))
    bare = clean.rstrip(". ")  # some systems drop these at the end
    return bare if bare == clean else f"{bare}_"


def _stands(letter: str) -> bool:
    return letter.isalnum() or letter in _KEPT


def _cut(text: str, most: int) -> str:
    """No more than so many bytes; what is cut off is told apart by a digest. The extension stays."""
    if len(text.encode()) <= most:
        return text
    _, dot, extension = text.rpartition(".")
    ending = f".{extension}" if dot and len(extension) <= 8 and extension.isascii() else ""
    kept = text.encode()[: most - 10 - len(ending)].decode("utf-8", "ignore")
    return f"{kept}~{_digest(text, 8)}{ending}"


def _told_apart(name: str, url: str, number: int) -> str:
    folder, _, last = name.rpartition("/")
    stem, dot, extension = last.rpartition(".")
    mark = f"~{_digest(f'{number} {url}', 8)}"
    new = f"{stem}{mark}.{extension}" if dot and stem else f"{last}{mark}"
    return f"{folder}/{new}"


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def as_reference(source: str, target: str) -> str:
    """How a file of a mirror names another, as a relative URL."""
    own, other = source.split("/")[:-1], target.split("/")
    shared = 0
    while shared < min(len(own), len(other) - 1) and own[shared] == other[shared]:
        shared += 1
    parts = [".."] * (len(own) - shared) + [quote(part, safe="-_.~+@=,!()") for part in other[shared:]]
    return "/".join(parts)


def resolved_names(names: Mapping[str, str], redirects: Mapping[str, str], most: int = 10) -> dict[str, str]:
    """URL -> name, also for URLs that redirect to a document of the mirror, through no more than `most` others."""
    found = dict(names)
    for url in redirects:
        target, hops = url, 0
        while target not in names and target in redirects and hops < most:
            target, hops = redirects[target], hops + 1
        if target in names:
            found.setdefault(url, names[target])
    return found
