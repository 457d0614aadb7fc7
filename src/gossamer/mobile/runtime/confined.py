"""The process of one crawler: shuts itself in, then runs the crawler over the pages that come through its pipe.

Place in the flow: :mod:`gossamer.mobile.runtime.keeper` starts it with one end of a socket pair as its standard input, and nothing
else. Afterwards nothing can be imported, so it rehearses first: modules are imported whole packages at a time, and a small crawler
runs over pages of every kind, since lists are read when they are first wanted. A test compares a crawler in such a process with one
at home, page by page.
"""

import codecs
import encodings
import gc
import gzip
import hashlib
import importlib
import os
import pkgutil
import socket
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType

import msgspec

import gossamer.documents
import gossamer.expressions
import gossamer.parsing
import gossamer.rdf
import gossamer.values
from gossamer.engine.confinement import confine
from gossamer.engine.worker import Frames
from gossamer.expressions.predicates import vocabulary
from gossamer.mobile.crawler import BringRules, CrawlerRefused, MobileCrawler, MobileProgram
from gossamer.mobile.judging import Installed, allowed_processors
from gossamer.mobile.running import run_crawler
from gossamer.mobile.runtime.keeper import (
    ConfinedSetup,
    FromProcess,
    GaveUp,
    GivenPage,
    MadeBatch,
    WallsStand,
    WantedPage,
    frames_of,
)
from gossamer.mobile.wire import BytesRefused, frame_of, from_bytes, to_bytes
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

#: Bytes of a message from the runtime, which is trusted.
_LONGEST = 1 << 31

Put = Callable[[FromProcess], None]

#: Late modules that are told of.
_MOST_LATE = 20

#: A machine that has no files cannot say what a traceback's lines are.
_MOST_TOLD = 500


def main() -> int:
    """Run the crawler that the first message brings; the status says nothing that the messages did not."""
    pipe = socket.socket(fileno=0)
    with pipe, frames_of(pipe, _LONGEST) as frames:
        setup = msgspec.msgpack.decode(frames.take(), type=ConfinedSetup)

        def put(message: FromProcess) -> None:
            frames.put(msgspec.msgpack.encode(message))

        try:
            import_everything()
            installed = allowed_processors(setup.processors)
        except UsageError as error:
            put(GaveUp("processors", str(error)[:_MOST_TOLD]))
            return 1
        except Exception as error:
            put(GaveUp("crashed", f"{type(error).__name__}: {error}"[:_MOST_TOLD]))
            return 1
        late = _LateImports()
        # An import that a page wants later must fail in the same way whether the walls have a gap or not.
        sys.meta_path.insert(0, late)
        walls = confine(setup.memory, setup.seconds, setup.layers)
        gc.freeze()  # modules and lists stay: to look through them again and again costs a page a tenth of its time
        put(WallsStand(walls))
        if setup.crawler:
            _run(put, frames, setup, installed, late)
    return 0


def _run(put: Put, frames: Frames, setup: ConfinedSetup, installed: Installed, late: "_LateImports") -> None:
    try:
        decoder = msgspec.msgpack.Decoder(GivenPage)

        def fetch(task: Task) -> Response:
            put(WantedPage(task.url, task.depth, task.source, task.relation[:1_000]))
            page = decoder.decode(frames.take())
            return Response(
                Outcome(page.outcome), page.status, headers=page.headers, body=page.body, cut=page.cut, error=page.error
            )

        for batch in run_crawler(from_bytes(setup.crawler), fetch, installed, cuts=setup.cuts):
            digest = hashlib.sha256(msgspec.msgpack.encode(batch)).digest()
            put(MadeBatch(frame_of(batch), digest, batch.summary is not None, tuple(late.names[:_MOST_LATE])))
    except MemoryError:
        put(GaveUp("memory", "it takes more memory than a crawler may have"))
    except (BytesRefused, CrawlerRefused) as error:
        put(GaveUp("invalid", str(error)[:_MOST_TOLD]))
    except UsageError as error:
        put(GaveUp("processors", str(error)[:_MOST_TOLD]))
    except (EOFError, OSError):
        return  # the other end is gone
    except Exception as error:
        put(GaveUp("crashed", f"{type(error).__name__}: {error}"[:_MOST_TOLD]))


class _LateImports:
    """Finds no module, and notes which were wanted. See `importlib.abc.MetaPathFinder`."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        if len(self.names) < _MOST_LATE:
            self.names.append(name)
        raise ModuleNotFoundError(f"{name} was not imported before the walls stood", name=name)


#: Packages of ours whose modules may be wanted for the first time by some page.
_OURS: tuple[ModuleType, ...] = (
    gossamer.expressions,
    gossamer.values,
    gossamer.rdf,
    gossamer.documents,
    gossamer.parsing,
)

#: Modules that these import within functions, and those that Python's own modules import.
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


if __name__ == "__main__":
    status = main()
    # Nothing here is worth the work of a proper end, and the walls forbid some of it.
    os._exit(status)
