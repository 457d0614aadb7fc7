"""What of a page a policy cannot forbid is taken out of it before it is replayed."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from gossamer.analysis.changed_links import changed_html
from gossamer.analysis.replaying import NOWHERE, disarm


def ready(page: str) -> str:
    tree = LexborHTMLParser(page)
    disarm(tree)
    return changed_html(tree, lambda href, relation: NOWHERE).decode("utf-8-sig")


@pytest.mark.parametrize(
    "page",
    [
        "<link rel=preconnect href=//evil.test>",
        "<link rel='dns-prefetch' href=//evil.test>",
        "<link rel=icon href=//evil.test>",
        "<meta http-equiv=refresh content='0; url=//evil.test'>",
        "<a ping=//evil.test href=/x>x</a>",
        "<a href='javascript:evil.test()'>x</a>",
        "<a href=' JavaScript:evil.test()'>x</a>",
        "<a href='java\nscript:evil.test()'>x</a>",
        "<a href='data:text/html,evil.test'>x</a>",
        "<a href='//evil.test/' target=_blank>x</a>",
        "<form action=//evil.test><button formaction=//evil.test>x</button></form>",
        "<iframe srcdoc='<a href=//evil.test>x</a>' src=//evil.test></iframe>",
        "<base href=//evil.test><a href=x>x</a>",
        "<svg><a xlink:href='//evil.test'><text>x</text></a></svg>",
        "<svg><a href='//evil.test'><text>x</text></a></svg>",
        "<svg><use href='//evil.test#a'/></svg>",
        "<img src=//evil.test srcset='//evil.test 2x'>",
        "<p style='background: url(//evil.test)'>x</p>",
        "<style>@import '//evil.test'; p { background: url(//evil.test) }</style>",
    ],
)
def test_no_part_of_a_page_leads_out_of_the_archive(page: str) -> None:
    made = ready(page)
    for place in ("//evil.test", "evil.test()", "http-equiv", "_blank", "data:"):
        assert place not in made


def test_a_page_keeps_its_form() -> None:
    page = "<h1 class=a>x</h1><a href='#part'>y</a><svg><use href='#shape'></use></svg><img src='data:image/gif;base64,R0'>"
    made = ready(page)
    for part in ('<h1 class="a">', 'href="#part"', 'href="#shape"', 'src="data:image/gif;base64,R0"'):
        assert part in made


def test_a_mirror_changes_backgrounds_lazy_pictures_and_pages_within_a_page() -> None:
    page = (
        "<table background=/a><td background=/b></table><img data-src=/c data-srcset='/d 1x, /e 2x' data-lazy=true>"
        "<iframe srcdoc='&lt;img src=/f&gt;&lt;iframe srcdoc=&quot;&amp;lt;a href=/g&amp;gt;&quot;&gt;'></iframe>"
    )
    seen: list[tuple[str, str]] = []

    def change(href: str, relation: str) -> str:
        seen.append((href, relation))
        return href.removeprefix("/") + ".file"

    written = changed_html(LexborHTMLParser(page), change).decode("utf-8-sig")
    assert sorted(href for href, _ in seen) == [f"/{name}" for name in "abcdefg"]
    assert all(f"{name}.file" in written for name in "abcdefg") and '"/' not in written
