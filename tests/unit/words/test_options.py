"""What the options of words change in the wiring of a crawl."""

from typing import Any

from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.words.llms import links_of


def compiled(base: Wiring | None = None, **options: Any) -> Wiring:
    return compile_wiring(["http://a.test/b", "ftp://a.test/"], build(all_options(), options), base)


def test_a_plain_crawl_reads_neither_pdf_nor_llms_txt() -> None:
    wiring = compiled()
    assert "pdf-links" not in wiring.providers and "llms-links" not in wiring.providers


def test_pdf_is_read_in_a_process_that_can_be_killed() -> None:
    wiring = compiled(compiled(follow_pdf=True), follow_pdf=True)
    process = wiring.components["process"]
    assert process.providers["processors"]["application/pdf"] == ["pdf-links"]
    assert process.settings["isolated"] == ["pdf-links"]


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
