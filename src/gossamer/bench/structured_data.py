"""What it costs to find a page's structured data, and to find that it has none: CPU time a page, skimmed before as in a crawl.

Pages are made here: a list of ten products in RDFa (50 triples), one product in JSON-LD and one in microdata among prose,
OpenGraph in the head alone, and prose.
"""

import gc
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.bench import triple_store
from gossamer.bench.peers import environment
from gossamer.bench.report import BenchReport
from gossamer.bench.triple_store import PAGES as PAGES_STORED
from gossamer.documents.document import Document
from gossamer.rdf.filtering import sign_of
from gossamer.rdf.page import structured_data
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit

#: Pages of each kind that are read; a figure is the median.
PAGES = 400

_PROSE = (
    '<div class="section"><p>Some documentation, with <a class="reference" href="/library/os.html#os.open">links</a> and words '
    "about properties and types of things.</p></div>\n"
)
_NAVIGATION = '<ul class="nav">' + "<li><a href=/x>y</a></li>" * 30 + "</ul>"
_RDFA = "".join(
    f'<div class="card" vocab="http://schema.org/" typeof="Product" resource="#p{number}"><h2 property="name">Name {number}</h2>'
    f'<a property="url" href="/p/{number}">go</a><p><span property="price" content="{number}">EUR {number}</span> <b>bold</b></p>'
    '<p property="description">Text <i>of</i> it</p></div>'
    for number in range(10)
)
_JSON_LD = (
    '<script type="application/ld+json">{"@context": "https://schema.org/", "@type": "Product", "@id": "#p", "name": "Widget", '
    '"image": ["/a.jpg", "/b.jpg"], "description": "A very good widget", "sku": "0446310786", "mpn": "925872", '
    '"brand": {"@type": "Brand", "name": "ACME"}, "review": {"@type": "Review", "author": {"@type": "Person", "name": "Fred"}, '
    '"reviewRating": {"@type": "Rating", "ratingValue": "4", "bestRating": "5"}}, '
    '"aggregateRating": {"@type": "AggregateRating", "ratingValue": "4.4", "reviewCount": "89"}, '
    '"offers": {"@type": "Offer", "url": "/anvil", "priceCurrency": "USD", "price": "119.99", "priceValidUntil": "2020-11-20", '
    '"itemCondition": "https://schema.org/UsedCondition", "availability": "https://schema.org/InStock"}}</script>'
)
_MICRODATA = (
    '<div itemscope itemtype="http://schema.org/Product" itemid="#p"><h1 itemprop=name>Widget</h1><img itemprop=image src=/a.jpg>'
    "<p itemprop=description>A very good widget</p><meta itemprop=sku content=0446310786>"
    "<div itemprop=brand itemscope itemtype=http://schema.org/Brand><b itemprop=name>ACME</b></div>"
    "<div itemprop=aggregateRating itemscope itemtype=http://schema.org/AggregateRating><b itemprop=ratingValue>4.4</b>"
    "<b itemprop=reviewCount>89</b></div><div itemprop=offers itemscope itemtype=http://schema.org/Offer>"
    "<a itemprop=url href=/anvil>x</a><b itemprop=price content=119.99>119</b><b itemprop=priceCurrency>USD</b>"
    "<link itemprop=availability href=http://schema.org/InStock></div></div>"
)
_OPENGRAPH = "".join(
    f'<meta property="og:{name}" content="Some value of this">'
    for name in ["title", "type", "url", "image", "description", "site_name"]
)

#: Kind of page -> what stands in its head, and in its body.
KINDS = {
    "RDFa, 50 triples": ("", _NAVIGATION + _RDFA + "<p>text</p>" * 30),
    "JSON-LD, a product": (_JSON_LD, _PROSE * 20),
    "microdata, a product": ("", _PROSE * 20 + _MICRODATA),
    "OpenGraph in the head, 4 kB": (_OPENGRAPH, _PROSE * 20),
    "OpenGraph in the head, 33 kB": (_OPENGRAPH, _PROSE * 180),
    "nothing, 4 kB": ("", _PROSE * 20),
    "nothing, 33 kB": ("", _PROSE * 180),
}


def _page(head: str, body: str) -> str:
    return f"<!doctype html><html><head><title>t</title>{head}</head><body>{body}</body></html>"


def _document(head: str, body: str) -> Document:
    page = _page(head, body).encode()
    response = Response(Outcome.OK, headers=(("content-type", "text/html; charset=utf-8"),), body=page)
    document = Document(Visit(Task("http://a.example/p", "a.example"), response, mime="text/html"))
    for known in ("skim", "base", "trouble"):  # a crawl has them anyway
        getattr(document, known)
    return document


def _microseconds(kind: str, ask: Callable[[Document], object]) -> str:
    documents = [_document(*KINDS[kind]) for _ in range(PAGES)]
    times: list[int] = []
    gc.collect()
    gc.disable()
    try:
        for document in documents:
            began = time.thread_time_ns()
            ask(document)
            times.append(time.thread_time_ns() - began)
    finally:
        gc.enable()
    return f"{sorted(times)[PAGES // 2] / 1000:,.0f}"


#: Peer -> what it needs, and which pages it reads, by what it calls them.
_PEERS = {
    "pyRdfa3": (("pyRdfa3", "html5lib", "rdflib<7"), {"RDFa, 50 triples": "rdfa"}),
    "extruct": (
        ("extruct",),
        {"RDFa, 50 triples": "rdfa", "JSON-LD, a product": "json-ld", "microdata, a product": "microdata"},
    ),
}


def _add_peers(report: BenchReport) -> None:
    """The same pages, read by others in environments of their own; a peer that cannot be set up is named."""
    table = report.table("The same pages by peers", "peer", "page", "found", "CPU ms")
    for name, (packages, kinds) in _PEERS.items():
        try:
            python = environment(f"structured-{name}", *packages)
        except UsageError as error:
            table.add(name, str(error), "", "")
            continue
        script = str(Path(__file__).with_name("structured_peer.py"))
        for kind, syntax in kinds.items():
            command = [str(python), "-I", script, name, syntax]
            done = subprocess.run(command, input=_page(*KINDS[kind]), check=False, capture_output=True, text=True)
            if done.returncode:
                table.add(name, kind, done.stderr.strip().rpartition("\n")[2], "")
                continue
            figures = msgspec.json.decode(done.stdout)
            table.add(name, kind, figures["found"], f"{figures['ms']:.1f}")


def run(pages: int = PAGES_STORED) -> BenchReport:
    """Measure each kind of page, the same by peers, and the store.

    Args:
        pages: how many pages of 50 triples the store takes.
    """
    report = BenchReport("structured-data")
    table = report.table(
        f"CPU time of a page, median of {PAGES}; the tree is built within it where one is needed",
        *("page", "bytes", "triples", "sign us", "all us"),
    )
    for kind, parts in KINDS.items():
        document = _document(*parts)
        found = structured_data(document)
        table.add(
            kind,
            f"{len(document.content):,}",
            len(found.triples),
            _microseconds(kind, sign_of),
            _microseconds(kind, structured_data),
        )
    _add_peers(report)
    triple_store.measure(report, pages)
    return report
