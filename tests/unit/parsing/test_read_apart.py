"""Pages that must not hold up or end the process of a crawl: parts that are read apart, and marks that outlive a process."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.documents.document import Document
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.parsing.contract import Processor
from gossamer.parsing.feeds import SitemapLinks
from gossamer.parsing.findings import read
from gossamer.parsing.html import HtmlLinks
from gossamer.parsing.isolation import MARKS, ReadingMarks
from gossamer.parsing.process_stage import Process, ProcessSheet
from gossamer.rdf.page import StructuredDataProcessor
from gossamer.testing.storage import visit
from gossamer.values.errors import ReadApart
from gossamer.values.visit import Found, Item, Visit

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Sink:
    """Stands for the output of the stage."""

    async def send_many(self, visits: Sequence[Visit]) -> None:
        raise AssertionError("one page is read")


async def processed(
    seen: Visit, processors: Sequence[Processor], *, kind: str = "text/html", **settings: Any
) -> tuple[Visit, Process]:
    """What the stage makes of a visit."""
    stage = Process(ProcessSheet(**settings))
    stage.processors, stage.gates = {kind: processors}, {}
    stage.outbox = Sink()  # type: ignore[assignment]  # all that the stage uses of its end
    stage.told = []  # type: ignore[attr-defined]
    stage.report = stage.told.append  # type: ignore[attr-defined, method-assign]
    await stage.start()
    try:
        [done] = await stage.filter_many([seen])
    finally:
        await stage.stop()
    return done, stage


def page_with(count: int) -> Visit:
    """A page with a link, and JSON-LD whose context has a context for each of its terms."""
    terms = {f"t{i}": {"@id": f"http://x.test/{i}", "@context": {}} for i in range(count)}
    data = json.dumps({"@context": terms, **{f"t{i}": "v" for i in range(count)}})
    return visit(body=f'<title>t</title><a href=x>a</a><script type="application/ld+json">{data}</script>'.encode())


def test_json_ld_that_could_hold_up_the_crawl_is_read_in_a_parser_process(run: Run) -> None:
    done, stage = run(processed(page_with(500), [HtmlLinks(), StructuredDataProcessor()]))
    assert (done.title, done.found, done.trouble) == ("t", (Found("x"),), "")
    assert len(done.triples) == 500
    assert stage.metrics.counters["read_apart"] == 1


def test_json_ld_that_costs_too_much_anywhere_costs_its_triples_alone_and_is_told(run: Run) -> None:
    done, stage = run(processed(page_with(4_000), [HtmlLinks(), StructuredDataProcessor()]))
    assert (done.title, done.found, done.triples) == ("t", (Found("x"),), ())
    assert done.trouble == "parse_skipped"
    assert stage.metrics.counters["rdf:parse_skipped"] == 1


def test_where_no_parser_process_may_run_what_is_not_read_is_told(run: Run) -> None:
    done, stage = run(processed(page_with(500), [HtmlLinks(), StructuredDataProcessor()], parsers=0))
    assert (done.found, done.triples, done.trouble) == ((Found("x"),), (), "parse_skipped")
    assert stage.metrics.counters["read_skipped"] == 1


def test_a_packed_sitemap_that_could_hold_up_the_crawl_is_read_in_a_parser_process(run: Run) -> None:
    body = gzip.compress(b"<urlset>" + b"<url><loc>http://a.test/1</loc></url>" * 150_000, 1)
    assert len(body) < ProcessSheet().apart
    seen = msgspec.structs.replace(visit("http://a.test/sitemap.xml.gz", body), mime="application/gzip")
    done, stage = run(processed(seen, [SitemapLinks()], kind="application/gzip"))
    assert stage.metrics.counters["read_apart"] == 1
    assert {found.href for found in done.found} == {"http://a.test/1"}
    small = msgspec.structs.replace(
        seen, response=visit(body=gzip.compress(b"<urlset><loc>http://a.test/1</loc>")).response
    )
    done, stage = run(processed(small, [SitemapLinks()], kind="application/gzip"))
    assert stage.metrics.counters["read_apart"] == 0
    assert [found.href for found in done.found] == ["http://a.test/1"]


class Once(Provider[NoSettings]):
    """A processor that keeps state, so no other process can ask it."""

    seen = 0

    def process(self, document: Document) -> list[Item]:
        """What it has seen."""
        self.seen += 1
        return [Item("seen", document.url, self.seen)]


class Dear(Provider[NoSettings]):
    """A processor that finds every page too dear to be read where others wait."""

    divisible = True

    def process(self, document: Document) -> list[Item]:
        """The process that reads the page."""
        if document.holds_up:
            raise ReadApart
        return [Item("read", document.url, os.getpid())]


def test_a_part_of_a_page_that_is_read_apart_lets_no_other_processor_read_it_twice(run: Run) -> None:
    once = Once()
    done, _ = run(processed(visit(body=b"<a href=x>"), [HtmlLinks(), StructuredDataProcessor(), once]))
    done, _ = run(processed(page_with(500), [HtmlLinks(), StructuredDataProcessor(), once]))
    assert (once.seen, len(done.items), done.found) == (2, 1, (Found("x"),))


def test_a_reader_without_another_process_leaves_out_what_is_dear_and_counts_it() -> None:
    findings = read(Document(visit(body=b"<a href=x>"), holds_up=True), [HtmlLinks(), Dear()], "plain")
    assert (findings.found, findings.trouble, findings.counts) == ((Found("x"),), "parse_skipped", {"read_skipped": 1})


# -- marks

#: Ends its process in the midst of a page, as a parser of others can.
_DIES = """
import os, sys
from gossamer.parsing.isolation import ReadingMarks
marks = ReadingMarks()
marks.open(sys.argv[1])
marks.begin("http://a.test/harmless")
marks.end()
marks.begin("http://a.test/")
os._exit(1)
"""


def die(directory: Path) -> None:
    subprocess.run([sys.executable, "-c", _DIES, str(directory)], check=False)


def strikes(directory: Path, url: str = "http://a.test/") -> int:
    marks = ReadingMarks()
    marks.open(str(directory))
    found = marks.begin(url)
    marks.end()
    marks.close()
    return found


def test_a_page_that_ends_the_process_is_known_to_those_that_follow(tmp_path: Path) -> None:
    assert strikes(tmp_path) == 0
    die(tmp_path)
    assert strikes(tmp_path) == 1
    assert strikes(tmp_path) == 1, "a process that ends well forgets nothing"
    assert strikes(tmp_path, "http://a.test/harmless") == 0
    die(tmp_path)
    assert strikes(tmp_path) == 2


def test_a_crawl_without_such_a_page_leaves_no_file(tmp_path: Path) -> None:
    strikes(tmp_path)
    assert not (tmp_path / MARKS).exists()


def test_a_process_that_lives_is_not_taken_for_a_dead_one(tmp_path: Path) -> None:
    living = ReadingMarks()
    living.open(str(tmp_path))
    living.begin("http://a.test/")
    assert strikes(tmp_path) == 0
    living.end()
    living.close()


def test_marks_hold_no_address(tmp_path: Path) -> None:
    die(tmp_path)
    assert all(b"a.test" not in file.read_bytes() for file in (tmp_path / MARKS).iterdir())


def test_more_pages_than_a_file_holds_are_no_trouble(tmp_path: Path) -> None:
    marks = ReadingMarks()
    marks.open(str(tmp_path))
    marks.close()
    (tmp_path / MARKS).mkdir(parents=True)
    (tmp_path / MARKS / "other").write_bytes(os.urandom(100_000))
    assert strikes(tmp_path) == 0
    assert {file.stat().st_size for file in (tmp_path / MARKS).iterdir()} == {4096}


def test_a_page_that_ended_the_process_is_read_in_another_one_and_then_no_more(run: Run, tmp_path: Path) -> None:
    seen = visit(body=b"<title>t</title><a href=x>")
    die(tmp_path)
    done, stage = run(processed(seen, [HtmlLinks()], directory=str(tmp_path)))
    assert (done.title, done.found, done.trouble) == ("t", (Found("x"),), "")
    assert stage.metrics.counters["read_apart"] == 1
    assert [line for line in stage.told if seen.url in line]
    die(tmp_path)
    done, stage = run(processed(seen, [HtmlLinks()], directory=str(tmp_path)))
    assert (done.found, done.trouble) == ((), "reader_killed")
    assert [line for line in stage.told if "not read any more" in line]
