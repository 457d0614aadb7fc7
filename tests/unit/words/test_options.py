"""What the options of words change in the wiring of a crawl."""

from typing import Any

import pytest

from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.options import all_options
from gossamer.documents.document import Document
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.values.errors import ReadApart
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit
from gossamer.words.reading import PdfLinks, WordColumns, links_of


def compiled(base: Wiring | None = None, **options: Any) -> Wiring:
    return compile_wiring(["http://a.test/b", "ftp://a.test/"], build(all_options(), options), base)


def test_a_plain_crawl_reads_neither_pdf_nor_llms_txt() -> None:
    wiring = compiled()
    assert "pdf-links" not in wiring.providers and "llms-links" not in wiring.providers


def test_a_choice_that_is_made_again_binds_each_processor_once() -> None:
    wanted = {"follow_pdf": True, "keep_words": ("facts", "facts")}
    wiring = compiled(compiled(**wanted), **wanted)
    processors = wiring.components["process"].providers["processors"]
    assert processors["application/pdf"] == ["pdf-links", "words"]
    assert processors["text/html"] == ["html", "words"]
    assert wiring.providers["words"].settings["columns"] == ["facts"]


@pytest.mark.parametrize("processor", [WordColumns, PdfLinks])
def test_pdf_is_never_read_where_a_crawl_waits(processor: "type[WordColumns | PdfLinks]") -> None:
    response = Response(Outcome.OK, 200, body=b"%PDF-1.4\nnothing")
    document = Document(Visit(Task("http://a.test/x.pdf", ""), response, mime="application/pdf"), holds_up=True)
    with pytest.raises(ReadApart):
        list(processor(None).process(document))


def test_llms_txt_of_each_site_is_a_seed() -> None:
    wiring = compiled(llms_txt=True)
    assert list(wiring.components["seeds"].settings["urls"]) == [
        "http://a.test/b",
        "ftp://a.test/",
        "http://a.test/llms.txt",
    ]
    assert wiring.components["process"].providers["processors"]["text/plain"] == ["sitemaps", "llms-links"]


def test_links_of_markdown_are_found_in_linear_time() -> None:
    text = '# T\n- [One](/a_(b)): x\n- [Two](<c>)\n[no]( \n![i](i.png "t")' + "[" * 100_000 + "[x](" * 100_000
    assert [(found.href, found.anchor) for found in links_of(text)] == [("/a_(b)", "One"), ("c", "Two"), ("i.png", "i")]
