"""The index of a crawl's documents, kept by a feed of visits: a page that changes is replaced, and one that is gone leaves.

Place in the flow: a consumer of the feed of `pages` (:mod:`gossamer.storage.tables.contract`), beside the crawl with `--index`
and at any time by `gossamer index`. Documents and mark are in one commit of tantivy, so a kill leaves neither without the
other: the mark is itself a document. The text comes from the archive, by a reader that is handed in.

A text stands in `text` as it is written, and in one of the `stem_` fields with the endings of its language taken off, so that
`run` finds `running` in English and leaves Finnish alone. Characters of Chinese, Japanese and Korean, which part no words,
stand one by one in `cjk`: a word of several is a phrase of them, which is exact where n-grams would be a guess, and smaller.
"""

import contextlib
import datetime
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import tantivy

from gossamer.documents.text import MAX_TEXT, TextChoice
from gossamer.engine.sheet import show_count
from gossamer.query.contract import INDEX_FORMAT_FILE, check_index, has_index, index_path
from gossamer.query.schema import tells
from gossamer.storage.recovery import drop_sums, sum_up
from gossamer.storage.tables.contract import FeedBatch, FeedMark
from gossamer.storage.tables.places import INDEX_DIRECTORY
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.outcome import DOCUMENTS

# Fields, and how texts become terms.

#: The number of the index's format: an index of another format has to be made anew.
FORMAT = 1

#: Language -> the stemmer for it.
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "nb": "norwegian", "nn": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip

#: Bytes of the longest word that is a term: longer ones are data.
LONGEST_WORD = 80

#: A character of a script that parts no words.
CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]")
_CJK_LETTER = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]"

#: Fields that words without a field are looked for in, and how much a find there counts.
WEIGHTS = {"title": 3.0, "text": 1.0, "anchors": 2.0, "cjk": 1.0}
_STEMMED = 0.8

#: The weight of a document of which nothing is known; PageRank adds up to as much again (`gossamer rank`).
PLAIN_WEIGHT = 1.0

#: Term of the one document that is none: it holds how far the index is.
MARK = "mark"


def stem_field(language: str) -> str:
    """The field for words of a language without their endings; empty where there is no stemmer for it."""
    name = STEMMERS.get(language.partition("-")[0].lower(), "")
    return f"stem_{name}" if name else ""


def boosts() -> dict[str, float]:
    """Field -> how much a find in it counts."""
    return {**WEIGHTS, **{f"stem_{name}": _STEMMED for name in sorted({*STEMMERS.values()})}}


def schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in ("url", "visit", "kind"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("host", "site", "language", "mime", "type"):
        builder.add_text_field(name, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "text", "anchors"):
        builder.add_text_field(name, stored=True, tokenizer_name="words")
    builder.add_text_field("cjk", tokenizer_name="cjk")
    for stemmer in sorted({*STEMMERS.values()}):
        builder.add_text_field(f"stem_{stemmer}", tokenizer_name=f"stem_{stemmer}")
    builder.add_unsigned_field("depth", stored=True, indexed=True, fast=True)
    builder.add_unsigned_field("extras", stored=True, fast=True)
    builder.add_date_field("fetched", stored=True, indexed=True, fast=True)
    builder.add_float_field("weight", stored=True, fast=True)
    builder.add_bytes_field("mark", stored=True)
    return builder.build()


def analyzers() -> dict[str, tantivy.TextAnalyzer]:
    """The analysers, which make terms of texts, by the names that the fields call it."""
    simple = (tantivy.Filter.remove_long(LONGEST_WORD), tantivy.Filter.lowercase())
    made = {
        "words": _analyzer(tantivy.Tokenizer.simple(), *simple, tantivy.Filter.ascii_fold()),
        "cjk": _analyzer(tantivy.Tokenizer.regex(_CJK_LETTER)),
    }
    for stemmer in {*STEMMERS.values()}:
        made[f"stem_{stemmer}"] = _analyzer(tantivy.Tokenizer.simple(), *simple, tantivy.Filter.stemmer(stemmer))
    return made


def _analyzer(tokenizer: tantivy.Tokenizer, *filters: tantivy.Filter) -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tokenizer)
    for one in filters:
        builder = builder.filter(one)
    return builder.build()


def parents(host: str) -> list[str]:
    """A host and every name above it of two parts and more: what `--host example.org` finds `www.example.org` by."""
    parts = host.split(".")
    if ":" in host or all(part.isdigit() for part in parts):
        return [host]  # an address has no parents
    return [".".join(parts[at:]) for at in range(max(1, len(parts) - 1))]


#: Bytes that tantivy collects before it writes a segment; one thread, since this runs beside a crawl.
HEAP = 64_000_000

#: The files of an index that say something, by their names; others are locks.
_SUMMED = ("[!.]*", ".managed.json")

#: Characters of a title that are indexed.
MAX_TITLE = 1_000


class IndexFormat(msgspec.Struct, frozen=True):
    """The content of the file beside tantivy's own."""

    format: int
    text: TextChoice = "main"
    """The parts of a page that are in it."""


class TextReader(Protocol):
    """Reads the texts of visits out of the archive."""

    def text(self, row: Mapping[str, Any]) -> tuple[str, str] | None:
        """Title and text of the visit that a row of `pages` tells of; None where it cannot be read."""
        ...

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks for a person on the texts that were read so far."""
        ...

    def close(self) -> None:
        """End what reads."""
        ...


def open_index(directory: Path) -> tantivy.Index:
    """The index of a crawl.
    Raises UsageError: there is none, or it is of another version. Raises CrawlDirectoryError: it is damaged."""
    check_index(directory)
    path = index_path(directory)
    try:
        made = msgspec.json.decode((path / INDEX_FORMAT_FILE).read_bytes(), type=IndexFormat)
    except (OSError, ValueError):
        raise _damaged(directory) from None
    try:
        if made.format == FORMAT and tantivy.Index.is_compatible(str(path)):
            index = tantivy.Index(schema(), path=str(path), reuse=True)
            for name, analyzer in analyzers().items():  # it does not remember how texts become terms
                index.register_tokenizer(name, analyzer)
            return index
    except (ValueError, OSError):
        raise _damaged(directory) from None
    raise UsageError(
        f"the index of {directory} was made by another version; make it anew with: gossamer index {directory} --overwrite"
    )


def _damaged(directory: Path) -> CrawlDirectoryError:
    return CrawlDirectoryError(
        f"the index of {directory} is damaged or half removed; make it anew with: gossamer index {directory} --overwrite"
    )


def indexed_text(directory: Path) -> TextChoice | None:
    """The parts of pages that are in the index; None where there is no index, or none that can be read."""
    try:
        return msgspec.json.decode((index_path(directory) / INDEX_FORMAT_FILE).read_bytes(), type=IndexFormat).text
    except (OSError, ValueError):
        return None


def make_index(directory: Path, text: TextChoice = "main") -> None:
    """Make an empty index where there is none; it is there whole or not at all."""
    path = index_path(directory)
    if has_index(directory):
        return
    if path.exists():
        raise _damaged(directory)
    fresh = Path(tempfile.mkdtemp(prefix="index-new-", dir=directory))
    try:
        fresh.chmod(0o755)
        tantivy.Index(schema(), path=str(fresh))
        (fresh / INDEX_FORMAT_FILE).write_bytes(msgspec.json.encode(IndexFormat(FORMAT, text)))
        fresh.rename(path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def remove_index(directory: Path) -> None:
    """Take the index away; does nothing where there is none."""
    path = index_path(directory)
    with contextlib.suppress(FileNotFoundError):
        gone = Path(tempfile.mkdtemp(prefix="index-gone-", dir=directory))
        path.rename(gone / INDEX_DIRECTORY)
    for gone in directory.glob("index-gone-*"):
        shutil.rmtree(gone, ignore_errors=True)


class SearchIndex:
    """The index as it is kept. Contract: `storage.tables.feeds.FeedConsumer`."""

    table = "pages"
    columns: tuple[str, ...] = ()
    rows_at_once = 1_000

    def __init__(self, directory: Path, reader: TextReader, text: TextChoice = "main") -> None:
        """Open it for writing, and make it where there is none; `reader` gives the texts of documents, which are of this
        choice. Raises UsageError: it is of another version. Raises CrawlDirectoryError: it is damaged, or another process
        writes it."""
        make_index(directory, text)
        self._directory = directory
        self._reader = reader
        self._index = open_index(directory)
        self._schema = self._index.schema
        self.unread = 0
        """Documents whose text could not be read out of the archive: they are in the index by their titles."""
        self.cut = 0
        """Documents of which only the first :data:`~gossamer.documents.text.MAX_TEXT` characters are in the index."""
        try:
            self._writer = self._index.writer(heap_size=HEAP, num_threads=1)
        except ValueError as error:
            if "Lock" in str(error):
                raise CrawlDirectoryError(f"the index of {directory} is in use by another process") from None
            raise _damaged(directory) from None
        drop_sums(index_path(directory))
        searcher = self._index.searcher()
        found = searcher.search(tantivy.Query.term_query(self._schema, "kind", MARK), 1).hits
        kept = searcher.doc(found[0][1]).get_first("mark") if found else None
        self._mark = msgspec.json.decode(bytes(kept or b"{}"), type=FeedMark)

    def __repr__(self) -> str:
        return f"<SearchIndex of {self._directory}>"

    @property
    def remarks(self) -> list[str]:
        """Remarks for a person on the texts that were taken since it was opened."""
        texts = show_count(self.cut, "text")
        cut = f"the index has the first {MAX_TEXT:,} characters of {texts}; words behind them are not found"
        return [*([cut] if self.cut else []), *self._reader.remarks]

    def _every(self) -> tantivy.Query:
        """Every document; the mark is none."""
        is_mark = tantivy.Query.term_query(self._schema, "kind", MARK)
        return tantivy.Query.boolean_query(
            [(tantivy.Occur.Must, tantivy.Query.all_query()), (tantivy.Occur.MustNot, is_mark)]
        )

    @property
    def documents(self) -> int:
        """How many are in it."""
        return count_of(self._index.searcher().search(self._every(), 1))

    def texts(self) -> Iterator[tuple[str, str, str]]:
        """URL, title and text of every document."""
        searcher = self._index.searcher()
        for _, place in searcher.search(self._every(), max(1, searcher.num_docs), count=False).hits:
            document = searcher.doc(place)
            url, title, text = (str(document.get_first(name) or "") for name in ("url", "title", "text"))
            yield url, title, text

    def mark(self) -> FeedMark:
        return self._mark

    def rebuild(self, generation: int) -> None:
        with self._committed(FeedMark(generation)):
            self._writer.delete_all_documents()

    def take(self, batch: FeedBatch) -> None:
        """A visit that says anything of its document takes the place of earlier ones of its URL."""
        with self._committed(batch.mark):
            for values in batch.rows:
                row = dict(zip(batch.columns, values, strict=True))
                if not tells(row["outcome"], row["change"]):
                    continue
                self._writer.delete_documents_by_term("url", row["url"])
                is_kept = row["warc_file"] and not (row["noarchive"] or row["kept_out"] or row["discarded"])
                if row["outcome"] in DOCUMENTS and is_kept:
                    found = self._reader.text(row)
                    self.unread += found is None
                    title, text = found or (row["title"] or "", "")
                    self.cut += len(text) > MAX_TEXT
                    if text or title:
                        self._writer.add_document(document_of(row, title, text))

    @contextlib.contextmanager
    def _committed(self, mark: FeedMark) -> Any:
        """All changes within are kept together with the mark, or none is."""
        try:
            yield
            self._writer.delete_documents_by_term("kind", MARK)
            told = tantivy.Document()
            told.add_text("kind", MARK)
            told.add_bytes("mark", msgspec.json.encode(mark))
            self._writer.add_document(told)
            self._writer.commit()
        except BaseException as error:
            self._writer.rollback()
            if isinstance(error, ValueError):
                raise OSError(f"the index cannot be written: {error}") from None
            raise
        self._mark = mark
        self._index.reload()

    def change(self, wanted: Mapping[str, int], of: Callable[[str, tantivy.Document], tantivy.Document]) -> int:
        """Write documents again whose extras have another digest than the wanted one of their URL, as `of` makes them of URL
        and old document; :meth:`keep_changes` keeps it."""
        searcher = self._index.searcher()
        places = {}
        for url in wanted:
            for _, place in searcher.search(tantivy.Query.term_query(self._schema, "url", url), 1, count=False).hits:
                places[url] = place
        digests = searcher.fast_field_values("extras", list(places.values()))
        changed = 0
        for (url, place), digest in zip(places.items(), digests, strict=True):
            if (digest or 0) != wanted[url]:
                made = of(url, searcher.doc(place))
                self._writer.delete_documents_by_term("url", url)
                self._writer.add_document(made)
                changed += 1
        return changed

    def keep_changes(self) -> None:
        with self._committed(self._mark):
            pass

    def close(self) -> None:
        self._reader.close()
        self._writer.wait_merging_threads()
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
            sum_up(index_path(self._directory), _SUMMED)


def count_of(result: tantivy.SearchResult) -> int:
    """How many documents a question found, which the stubs of tantivy do not know."""
    count: int = result.count  # type: ignore[attr-defined]
    return count


def document_of(row: Mapping[str, Any], title: str, text: str) -> tantivy.Document:
    """The document of the index for a visit."""
    plain: dict[str, Any] = {
        "url": row["url"],
        "visit": row["visit"] or "",
        "title": title[:MAX_TITLE],
        "text": text[:MAX_TEXT],
        "host": parents(row["host"]),
        "site": row["host"],
        "language": row["language"] or "",
        "mime": row["media_type"] or row["mime"] or "",
        "depth": row["depth"] or 0,
        "fetched": row["fetched_at"].replace(tzinfo=datetime.UTC),
        "weight": PLAIN_WEIGHT,
    }
    return written(plain)


def written(plain: Mapping[str, Any]) -> tantivy.Document:
    """A document of its stored values, with the fields that are made of them."""
    made = tantivy.Document()
    for name, value in plain.items():
        for one in value if isinstance(value, list) else [value]:
            _ADD[name](made, name, one)
    text, title = plain["text"], plain["title"]
    stemmed = stem_field(plain["language"])
    if stemmed:
        made.add_text(stemmed, f"{title}\n{text}")
    if CJK.search(title) or CJK.search(text):
        made.add_text("cjk", f"{title}\n{text}")
    return made


_ADD: dict[str, Callable[[tantivy.Document, str, Any], None]] = {
    **dict.fromkeys(
        ("url", "visit", "title", "text", "anchors", "host", "site", "language", "mime", "type"),
        tantivy.Document.add_text,
    ),
    "depth": tantivy.Document.add_unsigned,
    "extras": tantivy.Document.add_unsigned,
    "fetched": tantivy.Document.add_date,
    "weight": tantivy.Document.add_float,
}
