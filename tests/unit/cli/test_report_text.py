"""A report as text says why a column is empty, where an option would fill it."""

import io

from gossamer.cli.query import _as_text
from gossamer.query.reports import MadeReport, MadeSection

HINT = "a crawl with --analysis full keeps them"


def text_of(*rows: tuple[str, str | None]) -> str:
    out = io.StringIO()
    _as_text(MadeReport("broken", "", [MadeSection("Broken links", ["source", "anchor"], list(rows), len(rows))]), out)
    return out.getvalue()


def test_a_report_without_texts_of_links_names_the_option_that_keeps_them() -> None:
    assert HINT in text_of(("http://a.test/", None), ("http://b.test/", ""))


def test_a_report_with_texts_of_links_or_without_links_needs_no_hint() -> None:
    assert HINT not in text_of(("http://a.test/", None), ("http://b.test/", "More"))
    assert HINT not in text_of()
