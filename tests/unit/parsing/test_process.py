"""What the process stage makes of a visit, whatever the page and its processors do."""

import hashlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.documents.document import MAX_DEPTH, MAX_HERE, MAX_TAGS, REFERENCES, Document
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.parsing.contract import Processor
from gossamer.parsing.html import HtmlLinks
from gossamer.parsing.process_stage import Process, ProcessSheet
from gossamer.testing.storage import visit
from gossamer.values.body import BodyWriter, StoredBody
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Found, Item, Response, Visit

Run = Callable[[Coroutine[Any, Any, Any]], Any]

ENGLISH = b"<p>The committee has decided that the old bridge over the river will be replaced by a new one next year, because it "
ENGLISH += (
    b"is no longer safe for the many people who walk across it every day on their way to work and back home again."
)
FRENCH = "<p>Le comité a décidé que le vieux pont sur la rivière sera remplacé par un nouveau l'année prochaine, parce qu'il "
FRENCH += (
    "n'est plus assez sûr pour les nombreuses personnes qui le traversent chaque jour pour aller au travail et rentrer."
)


class Sink:
    """Stands for the output of the stage."""

    def __init__(self) -> None:
        self.sent: list[Visit] = []

    async def send_many(self, visits: Sequence[Visit]) -> None:
        self.sent += visits


async def processed(
    visits: Sequence[Visit], sheet: ProcessSheet | None = None, processors: dict[str, Sequence[Processor]] | None = None
) -> tuple[list[Visit], Process]:
    """What comes out of the stage, in the order in which it comes."""
    stage = Process(sheet)
    stage.processors = {"text/html": [HtmlLinks()]} if processors is None else processors
    stage.gates = {}
    sink = Sink()
    stage.outbox = sink  # type: ignore[assignment]  # all that the stage uses of its end
    await stage.start()
    try:
        rest = await stage.filter_many(list(visits))
    finally:
        await stage.stop()
    return sink.sent + rest, stage


def one(run: Run, seen: Visit, **settings: Any) -> Visit:
    [done], _ = run(processed([seen], ProcessSheet(**settings)))
    return done


def answer(body: bytes, *headers: tuple[str, str], outcome: Outcome = Outcome.OK) -> Visit:
    seen = visit("http://a.test/dir/page", body, outcome=outcome)
    return msgspec.structs.replace(seen, response=msgspec.structs.replace(seen.response, headers=headers))


def test_a_page_is_read_by_what_its_bytes_are(run: Run) -> None:
    page = b"<!doctype html><title>t</title><a href=x>"
    for headers in ((), (("content-type", "application/octet-stream"),)):
        done = one(run, answer(page, *headers))
        assert (done.mime, done.title, done.is_page) == ("text/html", "t", True)
        assert [found.href for found in done.found] == ["x"]
    for claim in ("text/plain", "image/png"):
        done = one(run, answer(page, ("content-type", claim)))
        assert (done.mime, done.title, done.is_page, done.found) == (claim, "", False, ())
        assert done.response.mime == claim
    assert not one(run, answer(b"PK\x03\x04<a href=x>", ("content-type", "text/html"))).is_page


@pytest.mark.parametrize("mime", ["application/xhtml+xml", "application/xml", "text/xml; charset=utf-8"])
def test_xhtml_is_a_page_whatever_kind_of_xml_it_is_sent_as(run: Run, mime: str) -> None:
    page = b"""<?xml version="1.0"?><h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:head><h:script src="a.js"/>
    <h:title>t</h:title></h:head><h:body><h:a href="x"/></h:body></h:html>"""
    seen = answer(page, ("content-type", mime))
    [done], _ = run(processed([seen], processors={"application/xhtml+xml": [HtmlLinks()]}))
    assert (done.mime, done.title, done.found) == ("application/xhtml+xml", "t", (Found("x"),))
    assert done.is_page


def test_long_xhtml_is_read_apart_sooner_than_html(run: Run) -> None:
    page = (
        b'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head><body>'
        + b"<p>x</p>" * 1000
        + b"</body></html>"
    )
    for mime, apart in (("text/html", 0), ("application/xhtml+xml", 1)):
        seen = answer(page, ("content-type", mime))
        [done], stage = run(
            processed(
                [seen],
                ProcessSheet(apart=20_000),
                {one: [HtmlLinks()] for one in ("text/html", "application/xhtml+xml")},
            )
        )
        assert (done.title, stage.metrics.counters["read_apart"]) == ("t", apart)


def test_what_a_page_says_of_itself_is_in_the_visit(run: Run) -> None:
    page = b"<html lang=en><link rel=canonical href=/real><meta name=ROBOTS content='noarchive, nosnippet'><meta name=gossamer "
    page += b"content=noindex><meta name=otherbot content=nofollow><title>t</title><a href=x>"
    done = one(
        run, answer(page, ("content-type", "text/html"), ("x-robots-tag", "otherbot: none, gossamer: max-snippet:1"))
    )
    assert done.canonical == "http://a.test/real"
    assert done.directives == ("max-snippet: 1", "noarchive", "noindex", "nosnippet")
    assert (done.language, done.simhash) == ("en", 0)
    assert not any(found.nofollow for found in done.found)


def test_a_canonical_link_in_the_body_is_nobodys_word(run: Run) -> None:
    assert one(run, visit(body=b"<body><p>x<link rel=canonical href=/evil>")).canonical == ""


@pytest.mark.parametrize("say", ["header", "meta", "hostile meta"])
def test_links_of_a_nofollow_page_are_known_and_disowned(run: Run, say: str) -> None:
    page = b"<a href=x>" if say == "header" else b"<meta name=robots content=none><a href=x>"
    headers = [("content-type", "text/html")] + [("x-robots-tag", "nofollow")] * (say == "header")
    seen = answer(page + b"<div>" * 2 * MAX_DEPTH * (say == "hostile meta"), *headers)
    assert one(run, seen).found == (Found("x", nofollow=True),)
    assert one(run, seen, obey_nofollow=False).found == (Found("x"),)
    assert one(run, seen, obey_nofollow=False).directives


def test_details_are_made_only_where_they_are_wanted(run: Run) -> None:
    done = one(run, visit(body=ENGLISH), details="full")
    assert done.language == "en" and done.simhash
    assert one(run, visit(body=ENGLISH), languages=("en",)).simhash == 0


@pytest.mark.parametrize("apart", [4_000_000, 0])
def test_fingerprints_go_by_all_text_where_that_is_chosen(run: Run, apart: int) -> None:
    page = visit(body=b"<nav>" + FRENCH.encode() + b"</nav><main>" + ENGLISH + b"</main>")
    prose = one(run, visit(body=ENGLISH), details="full").simhash
    assert one(run, page, details="full", apart=apart).simhash == prose
    assert one(run, page, details="full", apart=apart, text="all").simhash not in (prose, 0)


def test_pages_in_other_languages_are_discarded_and_counted(run: Run) -> None:
    pages = [
        visit(body=ENGLISH + b"<a href=x>"),
        visit(body=FRENCH.encode() + b"<a href=x>"),
        visit(body=b"<p>?<a href=x>"),
    ]
    (english, french, unknown), stage = run(processed(pages, ProcessSheet(languages=("en-GB",))))
    assert english.found and unknown.found
    assert (french.found, french.discarded, french.is_page) == ((), "language:fr", False)
    assert french.barred == {"store": "language:fr"}
    assert stage.metrics.counters["language:fr"] == 1


@pytest.mark.parametrize("tag", ["deutsch", "gr", "xx-YY", ""])
def test_a_language_that_is_none_is_refused(tag: str) -> None:
    with pytest.raises(SettingError, match=f"{tag!r} is not a language"):
        Process(ProcessSheet(languages=(tag,)))


def test_languages_may_have_codes_of_three_letters() -> None:
    assert Process(ProcessSheet(languages=("gsw", "el-GR"))).sheet.languages == ("gsw", "el-GR")


def test_refresh_fields_are_links_whatever_comes_with_them(run: Run) -> None:
    for outcome in (Outcome.OK, Outcome.CLIENT_ERROR):
        done = one(run, answer(b"", ("refresh", "0; url=/next"), outcome=outcome))
        assert done.found == (Found("/next", "header refresh"),)


class Everything(Provider[NoSettings]):
    """Yields one item for a document of whatever type."""

    def process(self, document: Document) -> Iterable[Found | Item]:
        yield Item("type", document.url, document.mime)


class Broken(Provider[NoSettings]):
    """Yields one item, then raises."""

    def process(self, document: Document) -> Iterable[Found | Item]:
        yield Item("before", document.url)
        raise ValueError("no")


def test_processors_are_chosen_by_type_by_kind_and_for_everything(run: Run) -> None:
    kinds: dict[str, Sequence[Processor]] = {
        "text/html": [HtmlLinks()],
        "image/*": [(pictures := Everything())],
        "*": [Everything(), pictures],
    }
    page, picture, other = run(
        processed(
            [
                visit(body=b"<a href=x>"),
                answer(b"GIF89a", ("content-type", "image/gif")),
                answer(b"x", ("content-type", "a/b")),
            ],
            processors=kinds,
        )
    )[0]
    assert [len(done.items) for done in (page, picture, other)] == [2, 2, 2]
    assert page.found and other.items[0].value == "a/b"


def test_a_processor_that_raises_costs_its_own_findings(run: Run) -> None:
    [done], stage = run(processed([visit(body=b"<a href=x>")], processors={"text/html": [Broken(), HtmlLinks()]}))
    assert done.found == (Found("x"),)
    assert done.trouble == "ValueError: no"
    assert stage.metrics.counters["raised:ValueError"] == 1


# -- pages that could hang a parser

READERS = """
import hashlib, os
from gossamer.engine.unit import Provider
from gossamer.engine.sheet import NoSettings
from gossamer.values.visit import Item

class Whole(Provider[NoSettings]):
    divisible = True

    def process(self, document):
        with document.open() as first, document.open() as second:
            digest = hashlib.file_digest(first, "sha256").hexdigest()
            start, end = second.read(5), second.seek(0, os.SEEK_END)
        yield Item("whole", document.url, [digest, end, start == document.content[:5], os.getpid()])

class Treed(Provider[NoSettings]):
    divisible = True

    def process(self, document):
        yield Item("treed", document.url, [len(document.css("a")), os.getpid()])

class Remembering(Treed):
    divisible = False

class Counting(Provider[NoSettings]):
    seen = 0

    def process(self, document):
        self.seen += 1
        with document.open() as stream:
            yield Item("counted", document.url, [self.seen, len(stream.read()), os.getpid()])
"""


@pytest.fixture
def readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of processors that another process can import."""
    (tmp_path / "own_readers.py").write_text(READERS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    return importlib.import_module("own_readers")


def test_a_hostile_page_is_parsed_where_it_can_be_killed_and_holds_up_no_other(run: Run) -> None:
    hostile = visit("http://a.test/deep", b"<title>deep</title>" + b"<div>" * 2 * MAX_DEPTH + b"<a href=x>")
    plain = visit("http://a.test/plain")
    (first, second), stage = run(processed([hostile, plain]))
    assert (first.url, second.url) == (plain.url, hostile.url)
    assert (second.title, second.found, second.trouble) == ("deep", (Found("x"),), "")
    assert stage.metrics.counters["read_apart"] == 1


def test_a_page_whose_tree_takes_too_long_is_scanned_and_says_so(run: Run, readers: Any) -> None:
    page = b"<a href=first>" + b"<div>" * 100_000 + b"<a href=last>"
    treed: dict[str, Sequence[Processor]] = {"text/html": [HtmlLinks(), readers.Treed()]}
    (done,), stage = run(processed([visit(body=page)], ProcessSheet(parse_deadline=1.0), treed))
    assert [found.href for found in done.found] == ["first", "last"]
    assert (done.items, done.trouble) == ((), "parse_timeout")
    assert stage.metrics.counters["parse_timeout"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux alone")
def test_a_page_whose_tree_eats_memory_is_scanned_and_says_so(run: Run, readers: Any) -> None:
    page = b"<a href=x>" + b"<br>" * 2_000_000
    sheet = ProcessSheet(parse_memory=250_000_000, parse_deadline=20.0)
    (done,), _ = run(processed([visit(body=page)], sheet, {"text/html": [HtmlLinks(), readers.Treed()]}))
    assert (done.found, done.trouble) == ((Found("x"),), "parse_crashed")


def test_no_tree_is_built_that_nobody_asks_for_and_its_page_is_whole(run: Run) -> None:
    page = b"<title>t</title>" + b"<div>" * 100_000 + b"<a href=x>"
    (done,), stage = run(processed([visit(body=page)], ProcessSheet(parse_deadline=2.0)))
    assert (done.title, done.found, done.trouble) == ("t", (Found("x"),), "")
    assert stage.metrics.counters["parse_timeout"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_parser_process_that_has_grown_reads_no_further_document(run: Run, readers: Any) -> None:
    large = b"<br>" * 1_000_000
    small = b"<div>" * 2 * MAX_DEPTH

    async def read(processor: Any) -> list[int]:
        pages = [visit(f"http://a.test/{number}", body) for number, body in enumerate((small, large, small))]
        sheet = ProcessSheet(isolated=("own",), parse_deadline=20.0)
        done, _ = await processed(pages, sheet, {"text/html": [processor]})
        assert {page.trouble for page in done} == {""}
        return [page.items[0].value[1] for page in sorted(done, key=lambda page: page.url)]

    treed, remembering = readers.Treed(), readers.Remembering()
    treed.name = remembering.name = "own"
    first, grown, fresh = run(read(treed))
    assert first == grown != fresh
    assert len(set(run(read(remembering)))) == 1  # its state would end with its process


@pytest.mark.parametrize(
    ("page", "apart"),
    [
        (b"<br>" * (MAX_HERE + 10) + b"<a href=x>", 1),
        (b"<a href='?" + b"&a" * REFERENCES * MAX_HERE + b"'>" + b"<a href=x>" * 10, 1),
        (b"<br>" * (MAX_HERE - 10) + b"<a href=x>", 0),
    ],
)
def test_a_page_of_so_many_tags_or_references_that_others_would_wait_is_read_apart(
    run: Run, page: bytes, apart: int
) -> None:
    (done,), stage = run(processed([visit(body=page)]))
    assert (done.found[-1], done.trouble) == (Found("x"), "")
    assert stage.metrics.counters["read_apart"] == apart


def test_a_large_document_is_read_apart(run: Run) -> None:
    large = visit(body=b"<title>t</title><a href=x>" + b"word " * 1_000)
    (done,), stage = run(processed([large], ProcessSheet(apart=4_000)))
    assert (done.title, done.found, done.trouble) == ("t", (Found("x"),), "")
    assert stage.metrics.counters["read_apart"] == 1
    (done,), stage = run(processed([large], ProcessSheet(apart=4_000), {}))
    assert stage.metrics.counters["read_apart"] == 0


def stored(content: bytes) -> StoredBody:
    writer = BodyWriter(0)
    writer.write(content)
    body = writer.take()
    assert isinstance(body, StoredBody)
    return body


@pytest.mark.parametrize("mime", ["application/x-film", "text/html"])
def test_all_of_a_large_document_is_read_in_a_parser_process(run: Run, readers: Any, mime: str) -> None:
    content = b"<p>" + os.urandom(4 << 20).hex().encode() * 3  # 24 MiB: more than anybody reads into memory at once
    answer = Response(Outcome.OK, 200, headers=(("content-type", mime),), body=stored(content))
    (done,), stage = run(
        processed([Visit(Task("http://a.test/", "a.test"), answer)], processors={"*": [readers.Whole()]})
    )
    assert (done.trouble, stage.metrics.counters["read_apart"]) == ("", 1)
    [item] = done.items
    digest, size, begins, where = item.value
    assert (digest, size, begins) == (hashlib.sha256(content).hexdigest(), len(content), True)
    assert where != os.getpid()


def test_a_processor_that_does_not_say_that_it_may_be_divided_is_one(run: Run, readers: Any) -> None:
    bodies = [b"<p>small", b"<p>" + b"large " * 1_000_000, b"<div>" * 2 * MAX_DEPTH, b"<p>small again"]
    pages = [visit(f"http://a.test/{number}", body) for number, body in enumerate(bodies)]
    done, _ = run(processed(pages, processors={"text/html": [HtmlLinks(), readers.Counting()]}))
    values = {page.url: page.items[0].value for page in done}
    assert sorted(seen for seen, _, _ in values.values()) == [1, 2, 3, 4]
    assert {values[page.url][1] for page in pages} == set(map(len, bodies))
    assert {where for _, _, where in values.values()} == {os.getpid()}


def test_state_is_not_divided_among_parser_processes_in_silence(run: Run, readers: Any) -> None:
    counting, whole = readers.Counting(), readers.Whole()
    counting.name, whole.name = "counting", "whole"
    run(processed([], ProcessSheet(isolated=("whole",), parsers=2), {"*": [whole]}))
    run(processed([], ProcessSheet(isolated=("counting",)), {"*": [counting]}))
    with pytest.raises(SettingError, match="'counting' may keep state"):
        run(processed([], ProcessSheet(isolated=("counting",), parsers=2), {"*": [counting]}))


def test_without_parser_processes_a_hostile_page_is_scanned_in_place(run: Run, readers: Any) -> None:
    page = visit(body=b"<br>" * (MAX_TAGS + 1) + b"<a href=x>")
    assert one(run, page, parsers=0).trouble == ""
    treed: dict[str, Sequence[Processor]] = {"text/html": [HtmlLinks(), readers.Treed()]}
    (done,), _ = run(processed([page], ProcessSheet(parsers=0), treed))
    assert (done.found, done.trouble) == ((Found("x"),), "parse_skipped")


# -- processors that nobody trusts

HOSTILE = """
import os
from gossamer.engine.unit import Provider
from gossamer.engine.sheet import NoSettings, Sheet
from gossamer.values.visit import Found, Item

class Settings(Sheet, frozen=True):
    does: str = "work"

class Hostile(Provider[Settings]):
    def process(self, document):
        does = self.sheet.does
        yield Item("begun", document.url, os.getpid())
        if does == "loop":
            while True:
                pass
        if does == "exit":
            os._exit(0)
        if does == "eat":
            yield Item("eaten", document.url, len(b"x" * (8 << 30)))
        if does == "raise":
            raise ValueError("no")
        if does == "print":
            print("hello")
            os.write(1, b"forged frame")
        yield Found("from-" + does)
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Makes a processor of a module that another process can import."""
    (tmp_path / "hostile_processors.py").write_text(HOSTILE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    module = importlib.import_module("hostile_processors")

    def make(does: str) -> Any:
        made = module.Hostile(module.Settings(does=does))
        made.name = does
        return made

    return make


@pytest.mark.parametrize(
    ("does", "trouble"),
    [
        ("loop", "Hostile: parse_timeout"),
        ("exit", "Hostile: parse_crashed"),
        ("eat", "Hostile: parse_crashed"),
        ("raise", "ValueError: no"),
        ("print", ""),
        ("work", ""),
    ],
)
def test_an_isolated_processor_costs_its_page_and_nothing_else(
    run: Run, hostile: Callable[[str], Any], does: str, trouble: str
) -> None:
    if does == "eat" and sys.platform != "linux":
        pytest.skip("address space is limited on Linux alone")
    sheet = ProcessSheet(isolated=(does,), parse_deadline=2.0)
    pages = [visit(body=b"<title>t</title><a href=x>"), visit("http://a.test/2", b"<a href=y>")]
    processors: dict[str, Sequence[Processor]] = {"text/html": [HtmlLinks(), hostile(does)]}
    done, _ = run(processed(pages, sheet, processors))
    mine = (Found(f"from-{does}"),) * (not trouble)
    assert {page.url: page.found for page in done} == {
        "http://a.test/": (Found("x"), *mine),
        "http://a.test/2": (Found("y"), *mine),
    }
    assert {page.trouble for page in done} == {trouble}
    assert done[0].title == "t"
    assert all(item.value != os.getpid() for page in done for item in page.items)


def test_a_processor_that_no_other_process_could_make_is_not_isolated_in_silence(run: Run) -> None:
    class Local(Everything):
        """Nobody can import this."""

    local = Local()
    local.name = "local"
    with pytest.raises(SettingError, match="'local' cannot be isolated"):
        run(processed([], ProcessSheet(isolated=("local",)), {"*": [local]}))


def test_a_name_that_no_processor_has_is_not_isolated_in_silence(run: Run) -> None:
    links = HtmlLinks()
    links.name = "html"
    with pytest.raises(SettingError, match="no processor 'htm'; did you mean 'html'"):
        run(processed([], ProcessSheet(isolated=("htm",)), {"text/html": [links]}))


def test_parser_processes_end_with_the_stage(run: Run) -> None:
    async def pids() -> list[int]:
        stage = Process()
        stage.processors = {"text/html": [HtmlLinks()]}
        stage.gates = {}
        stage.outbox = Sink()  # type: ignore[assignment]
        await stage.filter_many([visit(body=b"<div>" * 2 * MAX_DEPTH)])
        [parser] = stage._parsers._idle
        await stage.stop()
        return [parser._process.pid]

    [pid] = run(pids())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
