"""Pages for the tests of structured data."""

from collections.abc import Callable

import pytest

from gossamer.documents.document import Document
from gossamer.rdf.page import StructuredData, structured_data
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit

Reading = Callable[..., StructuredData]
Saying = Callable[[str], set[tuple[str, str, str]]]


def _document(markup: str, mime: str = "text/html") -> Document:
    response = Response(Outcome.OK, headers=(("content-type", f"{mime}; charset=utf-8"),), body=markup.encode())
    return Document(Visit(Task("http://a.test/dir/page", "a.test"), response, mime=mime))


def _read(markup: str, mime: str = "text/html", **options: bool) -> StructuredData:
    return structured_data(_document(markup, mime), rules=(), **options)


@pytest.fixture
def document() -> Callable[..., Document]:
    """Makes a page at `http://a.test/dir/page` of markup, and of a media type."""
    return _document


@pytest.fixture
def read() -> Reading:
    """Reads what such a page says, unfiltered."""
    return _read


@pytest.fixture
def said() -> Saying:
    """Subject, predicate and value of each triple of such a page, but for notes of vocabularies."""

    def say(markup: str) -> set[tuple[str, str, str]]:
        return {
            (subject, name, value) for subject, name, value, *_ in _read(markup).triples if "usesVocabulary" not in name
        }

    return say
