"""XHTML is read as XML where it is well-formed, and as HTML otherwise."""

import pytest
from tests.costs import is_linear

from gossamer.documents.document import Document
from gossamer.documents.xhtml import MAX_MADE, XHTML, as_html, type_of_xml
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.testing.storage import visit
from gossamer.values.visit import Visit

PUBLIC = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">'
ROOT = '<html xmlns="http://www.w3.org/1999/xhtml">'


def document(page: str | bytes, mime: str = XHTML) -> Document:
    content = page if isinstance(page, bytes) else page.encode()
    made = visit("http://a.test/", content)
    return Document(Visit(made.task, made.response, mime=mime))


def said(page: str | bytes, mime: str = XHTML) -> tuple[str, list[str]]:
    made = document(page, mime)
    links = HtmlLinks(HtmlLinksSheet(requisites=True)).process(made)
    return made.title, [found.href for found in links]


def test_an_element_that_closes_itself_hides_nothing() -> None:
    page = f'{ROOT}<head><script src="a.js"/><title/><style/></head><body><textarea/><iframe src="f"/><a href="b"/></body></html>'
    assert said(page) == ("", ["a.js", "f", "b"])
    assert said(page, "text/html") == ("", ["a.js"])


def test_prefixes_are_what_their_namespaces_say() -> None:
    page = """<h:html xmlns:h="http://www.w3.org/1999/xhtml" xmlns:d="http://purl.org/dc/elements/1.1/"><h:head><d:title>no</d:title>
    <h:title>T</h:title></h:head><h:body><h:a href="b" d:href="no">x</h:a><d:a href="no"/><svg xmlns="http://www.w3.org/2000/svg"
    xmlns:l="http://www.w3.org/1999/xlink"><title>no</title><a l:href="c"/>
    <style>&lt;</style><use l:href="d"/></svg></h:body></h:html>"""
    assert said(page) == ("T", ["b", "c", "d"])


def test_character_data_comments_and_scripts_are_no_markup() -> None:
    page = f"""{ROOT}<head><title>a<![CDATA[<b>&amp;]]></title>
    <script>if (a &lt; b) "&lt;/script>&lt;!--&lt;script>"</script></head>
    <body><!-- > <a href="no"/> -><a href="no"/> --><![CDATA[<a href="no">]]><?x <a href="no"?>
    <p title="&lt;a href=no>"><a href="b&amp;c=&quot;d&quot;"/></p></body></html>"""
    assert said(page) == ("a<b>&amp;", ['b&c="d"'])


def test_names_are_in_lower_case_as_xml_has_it() -> None:
    assert said(f'{ROOT}<A href="no"/><a HREF="no"/><a href="b"/></html>') == ("", ["b"])


def test_a_root_without_a_namespace_is_taken_for_a_page() -> None:
    assert said('<html><head><script src="a"/><title>T</title></head><x:a xmlns:x="x" href="no"/></html>') == (
        "T",
        ["a"],
    )


def test_names_of_characters_are_known_where_browsers_know_them() -> None:
    page = f"{ROOT}<title>&nbsp;&eacute;&lt;&LT;<![CDATA[&eacute;]]></title><a href='?&copy;'/></html>"
    assert said(PUBLIC + page) == ("é<<&eacute;", ["?©"])
    made = as_html(page.encode())
    assert made == page.encode(), "without a DTD it is no XML, and read as HTML"


@pytest.mark.parametrize(
    "page",
    [
        f"{ROOT}<title>T</title><a href=b></html>",
        f"{ROOT}<title>T</title><a href='b'></html>",
        f"{ROOT}<title>T</title><a href='b'/><x:a/></html>",
        f"{PUBLIC}{ROOT}<title>T</title><a href='b'/>&unheard-of;</html>",
        f"{PUBLIC}{ROOT}<title>T</title><a href='b' title='&unheardof;'/></html>",
        f"<?xml version='1.0'?><!DOCTYPE html [<!ENTITY e 'x'>]>{ROOT}<title>T</title><a href='b'/></html>",
        f"<!DOCTYPE html [<!ATTLIST a href CDATA 'no'>]>{ROOT}<title>T</title><a href='b'/><a/></html>",
        f'<!DOCTYPE html [<!ENTITY % e SYSTEM "file:///etc/passwd"> %e;]>{ROOT}<title>T</title><a href="b"/></html>',
        f"{ROOT}<title>T</title><a href='b'/><p xmlns='{'n' * 1000}'/></html>",
    ],
)
def test_what_is_not_well_formed_or_declares_anything_is_read_as_html(page: str) -> None:
    assert as_html(page.encode()) == page.encode()
    assert said(page) == ("T", ["b"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    ("page", "is_xhtml"),
    [
        (ROOT, True),
        (f"<?xml version='1.0'?>\n<!-- > -->\n{PUBLIC}\n<?x y?>{ROOT}", True),
        (f"<!DOCTYPE html [<!ENTITY a 'b'>]>{ROOT}", True),
        ("<h:html lang='en' xmlns:h = 'http://www.w3.org/1999/xhtml'>", True),
        ("<html>", False),
        (f"<rss><description>{ROOT}", False),
        (f"<!-- {ROOT} --><urlset>", False),
        ("<htmlx xmlns='http://www.w3.org/1999/xhtml'>", False),
        ("", False),
    ],
)
def test_xml_whose_root_is_that_of_xhtml_is_xhtml(page: str, is_xhtml: bool, encoding: str) -> None:
    for mime in ("application/xml", "text/xml"):
        assert type_of_xml(page.encode(encoding), mime) == (XHTML if is_xhtml else mime)


def test_a_page_in_another_encoding_is_rewritten_too() -> None:
    page = f'<?xml version="1.0" encoding="koi8-r"?>{ROOT}<title>я</title><a href="?я"/></html>'.encode("koi8-r")
    assert said(page) == ("я", ["?я"])


NAMES = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 10))
HOSTILE = {
    "billion laughs": f"<!DOCTYPE html [<!ENTITY e0 'ha'>{NAMES}]>{ROOT}<p>&e9;</p></html>",
    "default attributes": "<!DOCTYPE html [<!ATTLIST a "
    + "".join(f"b{n} CDATA 'x' " for n in range(500))
    + f">]>{ROOT}<a/></html>",
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_no_entity_is_expanded(shape: str) -> None:
    assert as_html(HOSTILE[shape].encode()) == HOSTILE[shape].encode()


REPEATED = {
    "elements": "<a/>",
    "nested": "<b>",
    "texts": "<p>x</p>",
    "namespaces": "<a xmlns='x'/>",
    "prefixes": "<b xmlns:p='x' p:q='r'>",
    "comments": "<!--",
    "character data": "<![CDATA[x]]>",
    "open character data": "<![CDATA[",
    "instructions": "<?x",
    "names": "&nbsp;",
    "roots": "<!-- -->",
    "quotes": "<a b='&quot;&quot;&quot;&quot;'/>",
}


@pytest.mark.parametrize("shape", REPEATED)
def test_hostile_pages_are_rewritten_in_linear_time(shape: str) -> None:
    def work(size: int) -> None:
        page = (PUBLIC + ROOT + REPEATED[shape] * (size // len(REPEATED[shape]))).encode()
        as_html(page + b"</b>" * page.count(b"<b") + b"</html>")

    assert is_linear(work, 20_000)


def test_what_is_made_of_a_page_is_bounded() -> None:
    page = (ROOT + "<p>" + "<![CDATA[<&]]>" + "</p></html>").replace("<&", "&" * (MAX_MADE // 5 + 1))
    assert as_html(page.encode()) == page.encode()
