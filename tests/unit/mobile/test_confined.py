"""A crawler in a process of its own finds what it finds at home, is ended by name at each limit, and is believed nothing."""

import gzip
import hashlib
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from gossamer.mobile.crawler import BringRules, CrawlerBatch, CrawlerFacts, MobileCrawler, MobileProgram
from gossamer.mobile.running import run_crawler
from gossamer.mobile.runtime.keeper import ConfinedEnd, CrawlerKeeper, MadeBatch, ProcessLimits, walls_here
from gossamer.mobile.wire import to_bytes, unpacked
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

pytestmark = pytest.mark.slow

SITE = "http://site.test"
WORDS = "Health and medicine for everybody who walks in the mountains of the country. " * 10
JAPANESE = "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059\u3002" * 30
SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>'
    "<loc>http://site.test/late</loc></url></urlset>"
)


def html(body: str, charset: str = "utf-8", declared: str = "") -> tuple[str, bytes]:
    """An HTML page; its charset is said by the answer, by a tag, or by nobody."""
    return (
        f"text/html; charset={charset}" if not declared else "text/html",
        f"<!DOCTYPE html><title>T</title>{declared}<body>{body}".encode(charset, "replace"),
    )


#: Pages of many charsets and types, of which several are met nowhere before the walls stand.
PAGES = {
    "/": html("".join(f'<a href="/{name}">{name}</a>' for name in ("sjis", "big5", "koi", "feed", "map", "x", "json"))),
    "/sjis": html(JAPANESE + '<a href="/utf16">u</a>', "shift_jis"),
    "/big5": html("\u4e2d\u6587\u7db2\u9801" * 50, "big5", '<meta charset="big5">'),
    "/koi": html(
        "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439 \u043c\u0438\u0440 " * 50, "koi8-r", " "
    ),
    "/utf16": html(f'<a href="http://b\u00fccher.test/">b</a>{WORDS}', "utf-16"),
    "/feed": (
        "application/atom+xml",
        b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/entry"/></entry></feed>',
    ),
    "/map": ("application/gzip", gzip.compress(SITEMAP.encode())),
    "/x": (
        "application/xhtml+xml",
        b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>x</p></body></html>',
    ),
    "/entry": html(f'<div typeof="Article" vocab="http://schema.org/"><h1>H</h1>{WORDS}</div>'),
    "/late": html(f"<p>{WORDS}</p><svg/>" + "<div>" * 300),
    "/json": ("application/json", b'{"a": "http://site.test/none"}'),
}

CRAWLER = MobileCrawler(
    MobileProgram(
        seeds=(f"{SITE}/",),
        store="keywords($words) or text(mountains) or type(Article) or language(ru) or size < 5000",
        bring=BringRules(("whole", "text", "links", "fingerprint"), ("h1", "p"), "rows"),
    ),
    CrawlerFacts(keywords={"words": ("health", "medic*")}),
)


def fetch(task: Task) -> Response:
    """The site."""
    kind, body = PAGES.get(task.url.removeprefix(SITE), ("", b""))
    if not body:
        return Response(Outcome.CLIENT_ERROR, 404)
    return Response(Outcome.OK, 200, headers=(("content-type", kind),), body=body)


def ran(
    crawler: MobileCrawler, limits: ProcessLimits | None = None, command: list[str] | None = None
) -> tuple[ConfinedEnd, list[MadeBatch]]:
    """How a crawler ends in a process of its own, and its batches."""
    limits = limits or ProcessLimits(is_weak=True)
    made: list[MadeBatch] = []
    return CrawlerKeeper(to_bytes(crawler), limits, command=command).run(fetch, made.append), made


def plain(batch: CrawlerBatch) -> CrawlerBatch:
    """Without the time that it took."""
    assert batch.summary is not None
    return msgspec.structs.replace(batch, summary=msgspec.structs.replace(batch.summary, seconds=0.0))


def test_pages_are_read_behind_walls_as_they_are_at_home() -> None:
    end, made = ran(CRAWLER)
    assert (end.reason, end.late) == ("", ()), "a module was wanted that nobody imported before the walls stood"
    (home,) = run_crawler(CRAWLER, fetch)
    (away,) = (unpacked(one.frame, CrawlerBatch) for one in made)
    assert plain(away) == plain(home)
    assert len(home.pages) >= 8 and {page.charset.lower() for page in home.pages} >= {"shift_jis", "big5", "utf-8"}
    assert made[0].digest == hashlib.sha256(msgspec.msgpack.encode(away)).digest()


def test_a_crawler_that_takes_too_much_processor_time_is_ended_by_name() -> None:
    began = time.monotonic()
    end, made = ran(CRAWLER, ProcessLimits(cpu=1, is_weak=True), script(tmp_busy))
    assert (end.reason, made) == ("cpu", [])
    assert end.cpu >= 1 and time.monotonic() - began < 60


def test_a_crawler_that_takes_too_much_memory_is_ended_by_name() -> None:
    end, _ = ran(CRAWLER, ProcessLimits(memory=64 << 20, is_weak=True), script(tmp_greedy))
    assert end.reason == "memory"


def test_a_crawler_is_killed_from_outside_by_the_reason_that_is_given() -> None:
    keeper = CrawlerKeeper(to_bytes(CRAWLER), ProcessLimits(is_weak=True), command=script(tmp_busy))
    threading.Timer(1.0, keeper.kill, ("time", "enough")).start()
    end = keeper.run(fetch, lambda batch: None)
    assert (end.reason, end.told) == ("time", "enough")


def test_a_crawler_is_not_run_without_whole_walls_unless_the_owner_says_so() -> None:
    bare = ProcessLimits(layers=("limits",))
    end, made = ran(CRAWLER, bare)
    assert (end.reason, made) == ("walls", [])
    assert "files" in end.told
    end, made = ran(CRAWLER, msgspec.structs.replace(bare, is_weak=True))
    assert end.reason == "" and made


def test_the_owner_is_told_which_walls_hold() -> None:
    walls = walls_here(ProcessLimits(layers=("limits",)))
    assert not walls.is_whole and any("files are open" in one for one in walls.missing)


#: The beginning of a program in the place of the process: it shuts itself in, and then does as it likes.
HEAD = """
import os, socket, sys
from gossamer.engine.confinement import Walls, confine
from gossamer.mobile.runtime.keeper import *
import msgspec
pipe = socket.socket(fileno=0)
reader, writer = pipe.makefile("rb"), pipe.makefile("wb")
setup = msgspec.msgpack.decode(Frames(reader, writer).take(), type=ConfinedSetup)
def put(pipe, message):
    Frames(reader, writer).put(msgspec.msgpack.encode(message))
def taken(reader, most):
    return Frames(reader, writer, most).take()
walls = confine(setup.memory, setup.seconds, setup.layers)
put(pipe, WallsStand(walls))
"""
tmp_busy = "while True: pass"
tmp_greedy = """
try:
    held = [bytearray(1 << 20) for _ in range(1 << 20)]
except MemoryError:
    put(pipe, GaveUp("memory", "too much"))
"""

SOURCE = str(Path(__file__).resolve().parents[3] / "src")


def script(body: str) -> list[str]:
    """The command that runs such a program."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {SOURCE!r})\n{HEAD}\n{body}"]


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        ("put(pipe, WallsStand(walls))", "began twice"),
        ("pipe.sendall(b'\\xff\\xff\\xff\\xff')", "a message of 4294967295 bytes"),
        ("pipe.sendall(b'\\x00\\x00\\x00\\x02{}')", "broke off"),
        ("put(pipe, WantedPage('not a url', 0, '', ''))", "no URL"),
        ("put(pipe, WantedPage('http://a.test/', -1, '', ''))", "broke off"),
        ("put(pipe, WantedPage('http://a.test/' + 'a' * 100_000, 0, '', ''))", "broke off"),
        ("put(pipe, MadeBatch(b'x', b'short', True))", "broke off"),
        ("put(pipe, ('exec', 'os.system'))", "broke off"),
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
    ],
)
def test_a_process_that_lies_is_ended(lie: str, told: str) -> None:
    end, made = ran(CRAWLER, command=script(lie + "\nwhile True: reader.read(1) or os._exit(0)"))
    assert end.reason == "crashed" and told in end.told, end
    assert made == []


def test_a_process_that_asks_for_whatever_it_likes_gets_what_the_gate_gives() -> None:
    asked: list[str] = []

    def gate(task: Task) -> Response:
        asked.append(task.url)
        return Response(Outcome.BLOCKED)

    wanted = [
        "file:///etc/passwd",
        "http://127.0.0.1:22/",
        "http://site.test/../../etc/passwd",
        "http://SITE.test:80/%2e%2e/x",
    ]
    lies = "\n".join(f"put(pipe, WantedPage({url!r}, 0, '', '')); taken(reader, 1 << 20)" for url in wanted)
    command = script(lies + "\nput(pipe, GaveUp('crashed', 'done'))")
    end = CrawlerKeeper(to_bytes(CRAWLER), ProcessLimits(is_weak=True), command=command).run(gate, lambda batch: None)
    assert end.told == "done"
    assert asked == ["file:///etc/passwd", "http://127.0.0.1:22/", "http://site.test/etc/passwd", "http://site.test/x"]
