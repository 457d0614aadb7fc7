"""Formulas of pages, as systems write them, in text and Markdown."""

import pytest
from tests.costs import is_linear

from gossamer.documents.main_part import with_formulas
from gossamer.documents.markdown import as_markdown
from gossamer.documents.text import main_text

PROSE = (
    "The committee has decided that the old bridge over the river will be replaced by a new one in the coming year. "
    * 3
)
TEX = '<semantics><mrow><mi>E</mi></mrow><annotation encoding="application/x-tex">{}</annotation></semantics>'


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (
            "<span class=katex><span class=katex-mathml><math>" + TEX.format("E=mc^2") + "</math></span>"
            "<span class=katex-html aria-hidden=true><span>E</span><span>mc2</span></span></span>",
            "\\(E=mc^2\\)",
        ),
        (
            "<span class=mwe-math-element><span style='display: none;'><math>"
            + TEX.format("{\\displaystyle x_{1}&lt;y}")
            + '</math></span><img src=a.svg class="mwe-math-fallback-image-inline" alt="{x}"></span>',
            "\\(x_{1}<y\\)",
        ),
        (
            "<span class=MathJax id=e><span>a</span></span><script type='math/tex; mode=display'>a < b & c</script>",
            "\\[a < b & c\\]",
        ),
        ('<math display="block" alttext="x^{2}"><mi>x</mi></math>', "\\[x^{2}\\]"),
        ("<math><mi>x</mi> <mo>=</mo> <mn>2</mn></math>", "x=2"),
        ("<math><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "x^2+1/2"),
        ("\\(a_1*b_2\\) and $x^2$", "\\(a_1*b_2\\) and $x^2$"),
    ],
)
def test_a_formula_stands_once_as_tex(markup: str, text: str) -> None:
    page = f"<main><p>{PROSE}</p><p>It says {markup} here.</p></main>".encode()
    assert as_markdown(page, "").text.endswith(f"\nIt says {text} here.\n")
    assert main_text(page).endswith(f"\nIt says {text} here.")


def test_a_page_without_formulas_is_left_as_it_is() -> None:
    page = b"<p>no formula &lt;math&gt;</p>"
    assert with_formulas(page) is page


@pytest.mark.parametrize(
    "piece",
    [
        "<math>",
        "<math><annotation ",
        "<span class=katex-html>x",
        "<script type=math/tex>",
        "<span class=x ",
        "<math>x</math>",
    ],
)
def test_formulas_without_end_take_linear_time(piece: str) -> None:
    assert is_linear(lambda size: with_formulas(b"<math></math>" + piece.encode() * size), 20_000)
