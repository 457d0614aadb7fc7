"""All that reading pages may ever need, imported and read before the walls stand: modules, codecs, lists.

Place in the flow: :mod:`gossamer.mobile.confined.process` rehearses once, before it shuts itself in. Modules are imported
whole packages at a time, and a small crawler runs over pages of every kind, since lists are read when they are first wanted. A
test compares a crawler in such a process with one at home, page by page.
"""

import codecs
import encodings
import gzip
import importlib
import pkgutil
from types import ModuleType

import gossamer.documents
import gossamer.expressions
import gossamer.parsing
import gossamer.rdf
import gossamer.values
from gossamer.expressions.predicates import vocabulary
from gossamer.mobile.crawler import BringRules, MobileCrawler, MobileProgram
from gossamer.mobile.running import run_crawler
from gossamer.mobile.wire import from_bytes, to_bytes
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

#: Packages of ours whose modules may be wanted for the first time by some page.
_OURS: tuple[ModuleType, ...] = (
    gossamer.expressions,
    gossamer.values,
    gossamer.rdf,
    gossamer.documents,
    gossamer.parsing,
)

#: What these import within functions, and what Python's own modules do.
_OTHERS = (
    *("brotli", "chardetng_py", "difflib", "email.utils", "numpy", "resiliparse.parse.lang", "selectolax.lexbor"),
    *("stringprep", "xml.parsers.expat", "zlib", "gzip", "bz2", "lzma", "json", "_strptime", "unicodedata"),
)

#: Codecs of other systems.
_ELSEWHERE = ("mbcs", "oem", "cp65001")

_SITE = "http://rehearsal.example"
_TEXT = "A page with health and medicine, with words enough to be taken for a text in some language of the world. " * 4
_HTML = f"""<!DOCTYPE html><html lang="en" vocab="http://schema.org/" typeof="Article"><head><title>Rehearsal</title>
<base href="/"><meta name="robots" content="index"><script type="application/ld+json">{{"@type": "Article"}}</script></head>
<body><nav><a href="/feed">Feed</a> <a href="http://\u00fc.example/?utm_source=a">Out</a></nav>
<article itemscope itemtype="http://schema.org/Article"><h1 property="name">Rehearsal</h1><p>{_TEXT}</p></article></body></html>"""
_FEED = '<?xml version="1.0"?><rss version="2.0"><channel><item><link>http://rehearsal.example/a</link></item></channel></rss>'
_SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>'
    "<loc>http://rehearsal.example/a</loc><lastmod>2026-01-01</lastmod></url></urlset>"
)
_XHTML = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>X</title></head><body><p>x</p></body></html>'

_PAGES: dict[str, tuple[str, bytes]] = {
    "/": ("text/html; charset=utf-8", _HTML.encode()),
    "/guessed": ("text/html", _HTML.encode("iso-8859-1").replace(b"health", b"h\xe9alth")),
    "/unnamed": ("", _HTML.encode()),
    "/x": ("application/xhtml+xml", _XHTML.encode()),
    "/feed": ("application/rss+xml", _FEED.encode()),
    "/xml": ("text/xml", _SITEMAP.encode()),
    "/sitemap": ("application/gzip", gzip.compress(_SITEMAP.encode())),
    "/list": ("text/uri-list", b"http://rehearsal.example/b\r\n"),
    "/plain": ("text/plain", _TEXT.encode()),
}

_STORE = (
    "text(health) or header(server) matches nginx or links > 1000 or type(Article) or keywords(medicine) or "
    "language(en) or title matches x or size > 1 or mime(image/*)"
)


def import_everything() -> None:
    """Import and read what a crawler may need, whatever its program and whichever pages it meets."""
    for package in _OURS:
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.ispkg and not module.name.endswith(".commands"):
                importlib.import_module(module.name)
    for name in _OTHERS:
        importlib.import_module(name)
    for codec in pkgutil.iter_modules(encodings.__path__):
        if codec.name not in _ELSEWHERE:
            importlib.import_module(f"encodings.{codec.name}")
            if codec.name != "aliases":
                codecs.lookup(codec.name)
    vocabulary()  # with the words of other packages
    bring = BringRules(("whole", "text", "links", "fingerprint"), ("h1", "nav > a[href]"), "rows")
    program = MobileProgram(
        tuple(_SITE + path for path in _PAGES), scope="domain", follow="not extension(zip)", store=_STORE, bring=bring
    )
    for _ in run_crawler(from_bytes(to_bytes(MobileCrawler(program))), _answer):
        pass


def _answer(task: Task) -> Response:
    kind, body = _PAGES.get(task.url.removeprefix(_SITE), ("", b""))
    if not body:
        return Response(Outcome.CLIENT_ERROR, 404)
    return Response(Outcome.OK, 200, headers=(("content-type", kind), ("server", "x")), body=body)
