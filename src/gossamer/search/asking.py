"""Questions to the index: words and phrases, filters, snippets, facets.

Place in the flow: `gossamer search` asks here, while the crawl runs and after. What a person writes is tantivy's language of
queries (words, `"phrases"`, AND, OR, NOT, `title:word`); filters are terms of their own, so that no word of a query can be one.
"""

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from gossamer.rdf.terms import PREFIXES
from gossamer.search.index import MARK, boosts, count_of, open_index, stem_field
from gossamer.values.errors import UsageError
from gossamer.values.hosts import given_host

#: Characters of a snippet.
SNIPPET = 200

#: Facets: fields that documents are counted by, as people call them, and how many values of each are told.
FACETS = {"host": "site", "language": "language", "type": "type", "mime": "mime"}
FACET_VALUES = 10

#: Characters of a question: more is no question, and each word costs a look-up in every field.
LONGEST_QUESTION = 2_000

_EARLIEST = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LATEST = datetime.datetime(2200, 1, 1, tzinfo=datetime.UTC)


class SearchFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on documents, beside their words. Each that is given holds."""

    hosts: tuple[str, ...] = ()
    """One of these, or below one."""
    languages: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Has things of one of these types, each an IRI or `schema:Product`."""
    without_types: tuple[str, ...] = ()
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None
    depth: int | None = None
    """At most."""


class SearchHit(msgspec.Struct, frozen=True):
    url: str
    title: str
    score: float
    snippet: str
    """The best part of the text."""
    marks: list[tuple[int, int]]
    """Where the words stand in it: beginning and end, in characters."""
    host: str
    language: str
    depth: int
    fetched_at: str
    visit: str
    types: list[str]


class SearchAnswer(msgspec.Struct, frozen=True):
    """The result of a question."""

    total: int
    hits: list[SearchHit]
    facets: dict[str, dict[str, int]] = {}
    """Facet -> value -> documents."""


class Search:
    """The index of a crawl as it is now."""

    def __init__(self, directory: Path) -> None:
        """Open it.
        Raises UsageError: there is none, or it is of another version. Raises CrawlDirectoryError: it is damaged."""
        self._index = open_index(directory)
        self._schema = self._index.schema
        self._searcher = self._index.searcher()

    def ask(
        self,
        words: str,
        filters: SearchFilters | None = None,
        *,
        most: int = 10,
        start: int = 0,
        facets: Sequence[str] = (),
    ) -> SearchAnswer:
        """The best documents: `most` of those that hold the words (all, where there are none) and are as the filters say, from
        the one at `start`. All that was found is counted by `facets`, names of :data:`FACETS`. Raises UsageError: the question is
        none."""
        asked = self._asked(words)
        given = filters or SearchFilters()
        must = [asked, *self._wanted(given)]
        never = [tantivy.Query.term_query(self._schema, "kind", MARK), *self._of_types(given.without_types)]
        query = tantivy.Query.boolean_query(
            [*((tantivy.Occur.Must, one) for one in must), *((tantivy.Occur.MustNot, one) for one in never)]
        )
        found = self._searcher.search(query, most, offset=start, weight_by_field="weight")
        hits = [self._hit(asked, score, self._searcher.doc(place)) for score, place in found.hits]
        terms = {name: {"terms": {"field": FACETS[name], "size": FACET_VALUES}} for name in facets}
        counted = self._searcher.aggregate(query, terms) if terms else {}
        values = {
            name: {bucket["key"] or "unknown": bucket["doc_count"] for bucket in one["buckets"]}
            for name, one in counted.items()
        }
        return SearchAnswer(count_of(found), hits, values)

    def _asked(self, words: str) -> tantivy.Query:
        if len(words) > LONGEST_QUESTION:
            raise UsageError(f"a question has at most {LONGEST_QUESTION:,} characters")
        if not words.strip():
            return tantivy.Query.all_query()
        weights = boosts()
        try:
            return self._index.parse_query(words, list(weights), weights, conjunction_by_default=True)
        except ValueError as error:
            hint = "put words with signs in them into quotes, as '\"C:drive\"'"
            raise UsageError(f"this question cannot be read: {' '.join(str(error).split())}; {hint}") from None

    def _terms(self, field: str, values: Sequence[str]) -> Iterator[tantivy.Query]:
        if values:
            yield tantivy.Query.term_set_query(self._schema, field, list(values))

    def _wanted(self, filters: SearchFilters) -> Iterator[tantivy.Query]:
        yield from self._terms("host", [host.rstrip(".") for host in map(given_host, filters.hosts)])
        yield from self._terms("language", [language.lower() for language in filters.languages])
        yield from self._of_types(filters.types)
        if filters.depth is not None:
            kind = tantivy.FieldType.Unsigned
            yield tantivy.Query.range_query(self._schema, "depth", kind, 0, filters.depth)
        if filters.since is not None or filters.until is not None:
            since, until = filters.since or _EARLIEST, filters.until or _LATEST
            yield tantivy.Query.range_query(
                self._schema, "fetched", tantivy.FieldType.Date, since, until, include_upper=False
            )

    def _of_types(self, types: Sequence[str]) -> Iterator[tantivy.Query]:
        yield from self._terms("type", [iri for one in types for iri in type_iris(one)])

    def _hit(self, asked: tantivy.Query, score: float, document: tantivy.Document) -> SearchHit:
        plain = document.to_dict()

        def first(name: str) -> Any:
            return next(iter(plain.get(name, ())), "")

        snippet, marks = self._snippet(asked, first("text"), first("language"))
        return SearchHit(
            first("url"),
            first("title"),
            round(score, 3),
            snippet,
            marks,
            first("site"),
            first("language"),
            first("depth") or 0,
            first("fetched").isoformat(timespec="seconds"),
            first("visit"),
            plain.get("type", []),
        )

    def _snippet(self, asked: tantivy.Query, text: str, language: str) -> tuple[str, list[tuple[int, int]]]:
        """The part of a text in which most of the words stand, by the field in which they are found."""
        for field in filter(None, ("text", stem_field(language), "cjk")):
            generator = tantivy.SnippetGenerator.create(self._searcher, asked, self._schema, field)
            generator.set_max_num_chars(SNIPPET)
            made = generator.snippet_from_doc(tantivy.Document(**{field: text}))
            part = made.fragment()
            if marks := [(one.start, one.end) for one in made.highlighted()]:
                return part, _in_characters(part, marks)
        return text[:SNIPPET], []


def _in_characters(text: str, marks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places in UTF-8 as places in the text, each run of marks as one."""
    data = text.encode()
    joined: list[tuple[int, int]] = []
    for start, end in sorted(set(marks)):
        first, last = (len(data[:at].decode("utf-8", "ignore")) for at in (start, end))
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def type_iris(text: str) -> list[str]:
    """The IRIs of a type as a person writes it: `schema:Product` by the prefixes that RDFa knows, `Product` of schema.org. Pages
    write those of schema.org with `http:` and with `https:`."""
    prefix, colon, name = text.partition(":")
    if not colon:
        prefix, name = "schema", text
    known = PREFIXES.get(prefix.lower())
    iri = f"{known}{name}" if known and not name.startswith("//") else text
    _, is_schema_org, rest = iri.partition("://schema.org/")
    return [f"{one}{is_schema_org}{rest}" for one in ("http", "https")] if is_schema_org else [iri]
