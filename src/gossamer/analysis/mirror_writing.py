"""The folder of a mirror, written out of the archive.

Place in the flow: a crawl with `--mirror` has a worker call :func:`write_noted` when it stops
(:mod:`gossamer.crawls.companions`), and `gossamer export --to folder` calls :func:`write_mirror`. The folder is written beside
its place and put there whole; a folder that holds anything that no mirror wrote is left alone.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from gossamer.analysis.mirror import (
    Change,
    LinkTargets,
    as_reference,
    changed_css,
    changed_html,
    mirror_names,
    resolved_names,
)
from gossamer.crawls.companions import MIRROR_MARK, MirrorMark, check_folder, read_note
from gossamer.crawls.directory import read_wiring
from gossamer.documents.content_coding import undone
from gossamer.documents.document import Document
from gossamer.engine.wiring import Wiring
from gossamer.engine.worker import Caller
from gossamer.query.archive import ArchivedDocument as Archived
from gossamer.query.archive import ArchiveReader
from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.values.body import MAX_READ, pieces
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import canonical
from gossamer.values.visit import HTML_TYPES, Response, Visit

#: Documents of the archive that a person may keep: a page that says `noarchive` asks not to be, and a filter may keep one out.
_DOCUMENTS = """
SELECT url, CASE brought WHEN 'text' THEN 'text/plain' ELSE coalesce(nullif(media_type, ''), mime) END FROM pages
WHERE outcome IN ('ok', 'truncated', 'not_modified')
      AND url IN (SELECT url FROM pages_all WHERE warc_file IS NOT NULL AND outcome IN ('ok', 'truncated'))
      AND url NOT IN (SELECT url FROM pages_all WHERE noarchive OR kept_out IS NOT NULL)
"""

_REDIRECTS = "SELECT source, target FROM links WHERE starts_with(relation, 'redirect')"

#: Bytes of a page or sheet beyond which it is written as it came: its tree would take a hundred times its size.
_MOST_CHANGED = MAX_READ


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
    check_folder(folder, directory)
    convert(directory)
    with Database(directory) as database:
        documents = [(url, mime) for url, mime in database.ask(_DOCUMENTS)]
        redirects: dict[str, str] = dict(iter(database.ask(_REDIRECTS)))
    if not documents:
        raise UsageError(f"{directory} has no document that could be written to {folder}")
    fresh, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        done = _Mirror(directory, fresh, dict(documents), redirects).write()
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror}") from None
    return done


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
        self._seeds = _seeds(wiring)
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
        self._write_entrance(names)
        mark = MirrorMark(str(self._directory.resolve()), tuple(sorted(files)))
        _write(self._folder / MIRROR_MARK, iter([msgspec.json.encode(mark)]))
        return Mirrored(len(files), self._unchanged, missing)

    def _write_entrance(self, names: Mapping[str, str]) -> None:
        """`index.html` leads to the first seed: a reader need not know the name of its file."""
        first = next((self._names[seed] for seed in self._seeds if seed in self._names), next(iter(names.values())))
        target = as_reference("index.html", first)
        refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
        text = f'<!DOCTYPE html><meta charset="utf-8">{refresh}<a href="{target}">{target}</a>\n'
        _write(self._folder / "index.html", iter([text.encode()]))

    def _content(self, url: str, name: str, archived: Archived) -> Iterator[bytes]:
        source = archived.source
        found = undone(source.headers, source.body, _MOST_CHANGED)
        body = found.data if found.is_readable else source.body
        mime = self._documents[url]
        if mime not in (*HTML_TYPES, "text/css"):
            return pieces(body)
        response = Response(Outcome.OK, status=200, headers=source.headers, body=body)
        document = Document(Visit(task=Task(url, ""), response=response, mime=mime))
        if len(body) > _MOST_CHANGED or (mime in HTML_TYPES and document.trouble):
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


def _seeds(wiring: Wiring) -> list[str]:
    return [url for plan in wiring.components.values() for url in plan.settings.get("urls", ())]


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
