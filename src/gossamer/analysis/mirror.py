"""The mirror of a crawl: the folder, written out of the archive, and the names in it.

Place in the flow: a crawl with `--mirror` has a worker call :func:`write_noted` when it stops
(:mod:`gossamer.crawls.companions`), and `gossamer export --to folder` calls :func:`write_mirror`. The folder is written beside its
place and put there whole; a folder that holds anything that no mirror wrote is left alone.
Names are the same for the same URLs. A link to a document that the mirror does not have keeps its whole URL, and leads to the web.

A name is made of the URL: host, path, query, an extension by which a browser that opens the file knows what it is. URLs are
strangers' words: a name holds nothing that leads out of the folder, that a file system refuses, or that two files share, even where
upper and lower case are the same.
"""

import contextlib
import hashlib
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from gossamer.analysis.changed_links import Change, LinkTargets, changed_css, changed_html
from gossamer.crawls.companions import MIRROR_MARK, MirrorMark, check_folder, read_note
from gossamer.crawls.directory import read_wiring
from gossamer.documents.content_coding import undone
from gossamer.documents.document import Document
from gossamer.engine.files import SUSPENDED_AFTER, scratch, take_lock
from gossamer.engine.worker import Caller
from gossamer.query.archive import ArchivedDocument as Archived
from gossamer.query.archive import ArchiveReader
from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.values.body import MAX_READ, pieces
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import canonical, endpoint_of, path_of, scheme_of
from gossamer.values.visit import Response, Visit

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
    """URL -> name of its file, with `/` between the parts, of documents with their media types."""
    wanted = [(url, _name(url, mime)) for url, mime in sorted(documents)]
    parts = [_key(name).split("/") for _, name in wanted]
    folders = {"/".join(one[:count]) for one in parts for count in range(1, len(one))}
    taken: set[str] = set()
    found = {}
    for url, plain in wanted:
        name, number = plain, 0
        while _key(name) in folders or _key(name) in taken:
            number += 1
            folder, _, last = name.rpartition("/")
            stem, dot, extension = last.rpartition(".")
            mark = f"~{_digest(f'{number} {url}', 8)}"
            name = f"{folder}/{stem}{mark}.{extension}" if dot and stem else f"{folder}/{last}{mark}"
        taken.add(_key(name))
        found[url] = name
    return found


def _key(name: str) -> str:
    """Equal for names that some file system takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _name(url: str, mime: str) -> str:
    host, port = endpoint_of(url)
    usual = {"http": 80, "https": 443}.get(scheme_of(url))
    folder = _part(host.strip("[]") or scheme_of(url)) + (f"+{port}" if port and port != usual else "")
    path, _, query = path_of(url).partition("?")
    parts = [_part(unquote(part)) for part in path.split("/")[1:-1] if part]
    last = _part(unquote(path.rpartition("/")[2])) if path.rpartition("/")[2] else "index.html"
    if query:  # it is put before the extension that a browser needs
        stem, dot, extension = last.rpartition(".")
        has_one = dot and stem and f".{extension.lower()}" in EXTENSIONS.get(mime, ())
        ending = f"@{_cut(_clean(unquote(query)), _MAX_QUERY)}"
        last = f"{stem}{ending}.{extension}" if has_one else f"{last}{ending}"
    name = "/".join((folder, *parts, _extended(last, mime)))
    if len(name.encode()) <= MAX_NAME:
        return name
    return "/".join((folder, "long", _digest(url, 16) + _extended("", mime)))


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
    clean = "".join(one if one.isalnum() or one in _KEPT else "_" for one in unicodedata.normalize("NFC", text))
    bare = clean.rstrip(". ")  # some systems drop these at the end
    return bare if bare == clean else f"{bare}_"


def _cut(text: str, most: int) -> str:
    """No more than so many bytes; names that are cut off are told apart by a digest. The extension stays."""
    if len(text.encode()) <= most:
        return text
    _, dot, extension = text.rpartition(".")
    ending = f".{extension}" if dot and len(extension) <= 8 and extension.isascii() else ""
    kept = text.encode()[: most - 10 - len(ending)].decode("utf-8", "ignore")
    return f"{kept}~{_digest(text, 8)}{ending}"


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


def resolved_names(names: Mapping[str, str], redirects: Mapping[str, str]) -> dict[str, str]:
    """URL -> name, also for URLs that redirect to a document of the mirror, through no more than ten others."""
    found = dict(names)
    for url in redirects:
        target, hops = url, 0
        while target not in names and target in redirects and hops < 10:
            target, hops = redirects[target], hops + 1
        if target in names:
            found.setdefault(url, names[target])
    return found


# The folder of a mirror, written out of the archive.

#: Documents of the archive that a person may keep: a page that says `noarchive` asks not to be, and a filter may keep one out.
_DOCUMENTS = """
SELECT url, CASE brought WHEN 'text' THEN 'text/plain' ELSE coalesce(nullif(media_type, ''), mime) END FROM pages
WHERE outcome IN ('ok', 'truncated', 'not_modified')
      AND url IN (SELECT url FROM pages_all WHERE warc_file IS NOT NULL AND outcome IN ('ok', 'truncated'))
      AND url NOT IN (SELECT url FROM pages_all WHERE noarchive OR kept_out IS NOT NULL)
"""

_REDIRECTS = "SELECT source, target FROM links WHERE starts_with(relation, 'redirect')"


class Mirrored(msgspec.Struct, frozen=True):
    files: int
    unchanged: int
    """Pages whose links are as they were: they are too large or too odd to be parsed."""
    missing: int
    """Documents that the archive does not have."""

    def told(self, folder: Path) -> list[str]:
        """Lines that a person should read."""
        lines = [f"{folder}: {self.files} files; open {folder / 'index.html'}"]
        if self.unchanged:
            lines.append(
                f"{self.unchanged} pages are written as they came, since they cannot be parsed: their links lead nowhere"
            )
        if self.missing:
            lines.append(f"{self.missing} documents could not be found in the archive: links to them are broken")
        return lines


def write_mirror(directory: Path, folder: Path) -> Mirrored:
    """Write the documents of a crawl as a folder. Raises UsageError: the folder holds what no mirror wrote, or cannot be made,
    or there is nothing to write. Raises CrawlDirectoryError: the archive is damaged."""
    try:
        with _alone(folder.parent) if folder.parent.exists() else contextlib.nullcontext():
            check_folder(folder, directory)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be read: {error.strerror or error}") from None
    convert(directory)
    with Database(directory) as database:
        documents = [(url, mime) for url, mime in database.ask(_DOCUMENTS)]
        redirects: dict[str, str] = dict(iter(database.ask(_REDIRECTS)))
    if not documents:
        raise UsageError(f"{directory} has no document that could be written to {folder}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch(place=folder.parent) as own:
            fresh, old = Path(own, "new"), Path(own, "old")
            fresh.mkdir()
            done = _Mirror(directory, fresh, dict(documents), redirects).write()
            with _alone(folder.parent):
                check_folder(folder, directory)
                if folder.exists():
                    folder.rename(old)
                fresh.rename(folder)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror or error}") from None
    return done


@contextlib.contextmanager
def _alone(above: Path) -> Iterator[None]:
    """No other mirror is put into place there meanwhile: two to one folder would each find the other's where its own belongs."""
    descriptor = os.open(above, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not take_lock(descriptor, SUSPENDED_AFTER):
            raise UsageError(f"another process has locked {above} and does not go on; let it go on, or end it")
        yield
    finally:
        os.close(descriptor)


class _Mirror:
    def __init__(
        self, directory: Path, folder: Path, documents: Mapping[str, str], redirects: Mapping[str, str]
    ) -> None:
        self._directory = directory
        self._folder = folder
        self._documents = documents
        self._redirects = redirects
        self._reader = ArchiveReader(directory)
        wiring = read_wiring(directory)
        self._targets = LinkTargets(wiring)
        self._seeds = [url for plan in wiring.components.values() for url in plan.settings.get("urls", ())]
        self._names: dict[str, str] = {}
        self._unchanged = 0

    def write(self) -> Mirrored:
        names = mirror_names(self._documents.items())
        self._names = resolved_names(names, self._redirects)
        files: list[str] = []
        missing = 0
        for url, name in names.items():
            try:
                archived = self._reader.document(url)
            except UsageError:
                missing += 1
                continue
            _write(self._folder / name, self._content(url, name, archived))
            files.append(name)
        # `index.html` leads to the first seed: a reader need not know the name of its file.
        first = next((self._names[seed] for seed in self._seeds if seed in self._names), next(iter(names.values())))
        target = as_reference("index.html", first)
        refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
        text = f'<!DOCTYPE html><meta charset="utf-8">{refresh}<a href="{target}">{target}</a>\n'
        _write(self._folder / "index.html", iter([text.encode()]))
        mark = MirrorMark(str(self._directory.resolve()), tuple(sorted(files)))
        _write(self._folder / MIRROR_MARK, iter([msgspec.json.encode(mark)]))
        return Mirrored(len(files), self._unchanged, missing)

    def _content(self, url: str, name: str, archived: Archived) -> Iterator[bytes]:
        source = archived.source
        found = undone(source.headers, source.body, MAX_READ)
        body = found.data if found.is_readable else source.body
        mime = self._documents[url]
        if mime not in (*HTML_TYPES, "text/css"):
            return pieces(body)
        response = Response(Outcome.OK, status=200, headers=source.headers, body=body)
        document = Document(Visit(task=Task(url, ""), response=response, mime=mime))
        # A larger one is written as it came: its tree would take a hundred times its size.
        if len(body) > MAX_READ or (mime in HTML_TYPES and document.trouble):
            self._unchanged += 1
            return pieces(body)
        if mime == "text/css":
            text = document.markup.decode()
            return iter([changed_css(text, self._change(url, name, url, "")).encode("utf-8", "replace")])
        return iter([changed_html(document.tree, self._change(url, name, document.base, document.charset))])

    def _change(self, url: str, name: str, base: str, charset: str) -> Change:

        def change(href: str, relation: str) -> str:
            fragment = href.partition("#")[2]
            end = f"#{fragment}" if fragment else ""
            target = self._targets.target(href, relation, url=url, base=base, charset=charset)
            if target and (known := self._names.get(target)):
                return (as_reference(name, known) if known != name else "" if end else as_reference(name, name)) + end
            try:
                return canonical(href, base) + end
            except UnreadableUrl:
                return href

        return change


def _write(path: Path, content: Iterator[bytes]) -> None:
    """A new file; one that is there already, or a link, is an error of ours and stops everything."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        for piece in content:
            file.write(piece)


def write_noted(directory: str, caller: Caller) -> list[str]:
    """Write the mirror that a crawl has noted; lines for a person.
    Raises UsageError, CrawlDirectoryError: it cannot be written."""
    folder = read_note(Path(directory))
    return list(write_mirror(Path(directory), folder).told(folder)) if folder is not None else []
