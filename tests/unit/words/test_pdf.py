"""PDF is read in bounded time, whatever it holds."""

import random

import pytest
from tests.journeys.test_words import pdf

from gossamer.words.pdf import PdfReading, _whole_words, read_pdf

WHOLE = pdf("Bridges of wood and stone", "http://a.test/x")


def test_a_document_has_its_text_title_author_date_and_links() -> None:
    found = read_pdf(WHOLE)
    assert (found.title, found.author, found.created, found.pages) == ("A paper", "A. Writer", "2025-01-01", 1)
    assert (found.markdown, found.links, found.trouble) == ("Bridges of wood and stone", ("http://a.test/x",), "")


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7", b"no document", WHOLE[:100]])
def test_a_damaged_document_is_named(content: bytes) -> None:
    assert read_pdf(content).trouble == "pdf_damaged"


def test_damaged_documents_hang_nothing_and_end_nothing() -> None:
    choose = random.Random(7)
    reading = PdfReading()
    try:
        for _ in range(60):
            broken = bytearray(WHOLE)
            for _ in range(choose.randint(1, 30)):
                broken[choose.randrange(len(broken))] = choose.randrange(256)
            assert reading.read(bytes(broken)).trouble in ("", "pdf_damaged", "pdf_encrypted")
        assert reading.read(WHOLE).markdown == "Bridges of wood and stone"
    finally:
        reading.close()


def test_a_process_that_is_late_is_killed_and_the_next_document_is_read() -> None:
    reading = PdfReading(deadline=0.0)
    assert reading.read(WHOLE).trouble == "pdf_timeout"
    reading._deadline = 60.0
    assert not reading.read(WHOLE).trouble
    reading.close()


def test_words_that_the_end_of_a_line_parts_are_whole() -> None:
    texts = ["docu\x02ments and well\x02known", "a well-known T\x02Shirt, x\x021"]
    assert list(_whole_words(texts)) == ["documents and well-known", "a well-known T-Shirt, x-1"]
    assert list(_whole_words(["a" * 200_000 + "\x02" * 100_000])) == ["a" * 200_000 + "-" * 100_000]
