"""A hostile runtime gets nothing past home: each attack is refused by its name, and an honest batch passes."""

from typing import Any

import msgspec
import pytest

from gossamer.mobile.crawler import (
    BringRules,
    BroughtItem,
    BroughtLink,
    BroughtPage,
    CrawlerBatch,
    IrrelevantRow,
    JourneySummary,
    MobileCrawler,
    MobileProgram,
    NamedProcessor,
    RedirectRow,
    TravelLimits,
)
from gossamer.mobile.manager.away import BatchRefused, KnownAtHome, check_batch, visits_of
from gossamer.mobile.manager.lent import CrawlerRecord
from gossamer.values.body import sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Visit

HOST = "a.test"
BYTES = b"<title>A</title>"
CRAWLER = MobileCrawler(
    MobileProgram(seeds=(f"http://{HOST}/",), limits=TravelLimits(depth=3, external=2, brought=1_000, urls=100)),
    id="c1",
)
RECORD = CrawlerRecord("c1", "https://runtime.test", (HOST,), b"", 0.0, 10.0, 100.0)
PAGE = BroughtPage(f"http://{HOST}/x", 1, f"http://{HOST}/", "a href", whole=BYTES, digest=sha1_base32(BYTES), size=16)


def batch(**given: Any) -> CrawlerBatch:
    made = CrawlerBatch(CRAWLER.program.digest, 0, "c1", (PAGE,))
    return msgspec.structs.replace(made, **given)


def page(**given: Any) -> CrawlerBatch:
    return batch(pages=(msgspec.structs.replace(PAGE, **given),))


def visits(
    one: CrawlerBatch, crawler: MobileCrawler = CRAWLER, owner: str = "", task: Task | None = None
) -> list[Visit]:
    known = KnownAtHome(lambda url, host: task, lambda digest, url: owner)
    return list(visits_of(one, crawler, RECORD, known, 1_000.0))


ATTACKS: dict[str, tuple[CrawlerBatch, str]] = {
    "a page of a host that was not granted": (page(url="http://bank.test/"), "not_granted"),
    "a host that only looks like a granted one": (page(url=f"http://{HOST}.evil.test/"), "not_granted"),
    "a URL that is not in its normal form": (page(url=f"http://{HOST}/%7e/../x"), "forged"),
    "a URL with credentials": (page(url=f"http://{HOST}@bank.test/"), "forged"),
    "a page from the disk": (page(url="file:///etc/passwd"), "forged"),
    "a page found on another's site": (page(source="http://bank.test/"), "not_granted"),
    "a robots.txt of its own making": (page(relation="robots"), "forged"),
    "an order to the crawl": (page(relation="order"), "forged"),
    "a page that nobody fetched": (page(relation="announced"), "forged"),
    "a file that a browser asks for": (page(relation="render script"), "forged"),
    "a control character in a relation": (page(relation="a\r\nhref"), "forged"),
    "bytes that are not those of the digest": (page(whole=b"<title>B</title>"), "forged"),
    "a size that is not that of the bytes": (page(size=3), "forged"),
    "an error that brings a document": (page(status=404), "forged"),
    "a fingerprint of more bits than there are": (page(simhash=1 << 64), "forged"),
    "a negative fingerprint": (page(simhash=-1), "forged"),
    "a page deeper than the limit": (page(depth=4), "forged"),
    "a document that home is said to have": (page(is_known=True), "forged"),
    "a duplicate of another's page": (page(duplicate_of="http://bank.test/", whole=None), "not_granted"),
    "rows that were not asked for": (batch(rows=(IrrelevantRow(f"http://{HOST}/y", 200, "", 1, "r"),)), "forged"),
    "another crawler's batch": (batch(crawler="c2"), "sequence"),
    "another program's batch": (batch(program="0" * 64), "sequence"),
    "a sequence that was committed": (batch(sequence=1), "sequence"),
    "an empty batch, and one more, for ever": (batch(pages=()), "forged"),
    "more external URLs than asked for": (
        batch(external=tuple(f"http://x{at}.test/" for at in range(3)), depths=(1, 1, 1)),
        "too_much",
    ),
    "an external URL that is none": (batch(external=("javascript:alert(1)",), depths=(1,)), "forged"),
    "external URLs without depths": (batch(external=("http://x.test/",)), "forged"),
    "a summary of more documents than there are": (batch(summary=JourneySummary(irrelevant=1_000)), "forged"),
}


@pytest.mark.parametrize(("attack", "reason"), ATTACKS.values(), ids=ATTACKS)
def test_an_attack_of_a_runtime_is_refused_whole(attack: CrawlerBatch, reason: str) -> None:
    with pytest.raises(BatchRefused) as refusal:
        check_batch(attack, CRAWLER, RECORD, 1_000)
    assert refusal.value.reason == reason


def test_a_runtime_that_brings_more_than_it_may_is_refused() -> None:
    full = msgspec.structs.replace(RECORD, bytes=200 << 20)
    with pytest.raises(BatchRefused) as refusal:
        check_batch(batch(), CRAWLER, full, 1_000)
    assert refusal.value.reason == "too_much"


def test_bytes_that_were_not_asked_for_are_refused() -> None:
    program = msgspec.structs.replace(CRAWLER.program, bring=BringRules(("text",)))
    crawler = msgspec.structs.replace(CRAWLER, program=program)
    with pytest.raises(BatchRefused):
        check_batch(batch(program=program.digest), crawler, RECORD, 1_000)


def test_an_honest_page_becomes_a_visit_that_says_how_it_came() -> None:
    check_batch(batch(), CRAWLER, RECORD, 1_000)
    (visit,) = visits(page(headers=(("Content-Type", "text/html"), ("Content-Encoding", "gzip"))))
    assert (visit.url, visit.task.depth, visit.task.source) == (f"http://{HOST}/x", 1, f"http://{HOST}/")
    assert visit.response.headers == (("content-type", "text/html"),) and visit.response.body == BYTES
    brought = visit.response.brought
    assert brought is not None and (brought.crawler, brought.runtime, brought.form) == ("c1", RECORD.runtime, "whole")


def test_how_a_page_was_found_is_no_claim_where_home_knows_it() -> None:
    (visit,) = visits(batch(), task=Task(PAGE.url, HOST, 0, "http://b.test/", "img src"))
    assert (visit.task.source, visit.task.relation, visit.task.depth) == ("http://b.test/", "img src", 0)


def test_a_duplicate_is_one_only_of_what_home_has() -> None:
    again = page(whole=None, duplicate_of=f"http://{HOST}/first")
    (known,) = visits(again, owner=f"http://{HOST}/first")
    (unknown,) = visits(again)
    assert known.duplicate_of == f"http://{HOST}/first" and known.digest == PAGE.digest
    assert not unknown.duplicate_of and not unknown.digest and "is not here" in unknown.trouble


def test_links_of_a_page_that_was_not_expanded_are_kept_and_not_followed() -> None:
    program = msgspec.structs.replace(CRAWLER.program, bring=BringRules(("text", "links")))
    crawler = msgspec.structs.replace(CRAWLER, program=program)
    part = msgspec.structs.replace(PAGE, whole=None, text="A", links=(BroughtLink("http://b.test/", "a href"),))
    (followed,) = visits(batch(pages=(part,)), crawler)
    (kept,) = visits(batch(pages=(msgspec.structs.replace(part, is_expanded=False),)), crawler)
    assert followed.is_part and [found.href for found in followed.found] == ["http://b.test/"]
    assert not kept.found and [link.url for link in kept.refused] == ["http://b.test/"]


def test_an_item_that_is_no_json_is_refused() -> None:
    program = msgspec.structs.replace(
        CRAWLER.program, bring=BringRules(("items",)), processors=(NamedProcessor("p", "1"),)
    )
    crawler = msgspec.structs.replace(CRAWLER, program=program)
    deep = "[" * 100_000
    for value in ("{", deep):
        part = msgspec.structs.replace(PAGE, whole=None, items=(BroughtItem("k", PAGE.url, value),))
        with pytest.raises(BatchRefused):
            visits(batch(pages=(part,)), crawler)


def test_a_row_of_an_error_is_a_visit_that_ended_so_where_it_was_asked_for() -> None:
    gone = batch(pages=(), rows=(IrrelevantRow(f"http://{HOST}/y", 404, "", 0, "outcome:client_error"),))
    (visit,) = visits(gone)
    assert (visit.response.outcome, visit.response.status) == (Outcome.CLIENT_ERROR, 404)
    program = msgspec.structs.replace(CRAWLER.program, bring=BringRules(errors=True))
    asking = msgspec.structs.replace(CRAWLER, program=program)
    check_batch(msgspec.structs.replace(gone, program=program.digest), asking, RECORD, 1)
    for rule in ("outcome:ok", "outcome:robots_denied", "outcome:", "filter: text(x)"):
        row = IrrelevantRow(f"http://{HOST}/y", 404, "", 0, rule)
        with pytest.raises(BatchRefused):
            check_batch(batch(program=program.digest, pages=(), rows=(row,)), asking, RECORD, 1)


def test_a_redirect_leads_on_where_it_was_asked_for() -> None:
    program = msgspec.structs.replace(CRAWLER.program, bring=BringRules(errors=True), version=2)
    asking = msgspec.structs.replace(CRAWLER, program=program)
    honest = RedirectRow(f"http://{HOST}/y", 301, "http://b.test/gone", 2)
    one = batch(program=program.digest, pages=(), redirects=(honest,))
    check_batch(one, asking, RECORD, 1)
    (visit,) = visits(one, asking)
    assert (visit.response.outcome, visit.response.status, visit.task.depth) == (Outcome.REDIRECT, 301, 2)
    assert visit.response.header("location") == "http://b.test/gone"
    with pytest.raises(BatchRefused):
        check_batch(batch(pages=(), redirects=(honest,)), CRAWLER, RECORD, 1)
    for forged in ({"url": "http://b.test/"}, {"depth": 4}, {"target": "javascript:alert(1)"}):
        row = msgspec.structs.replace(honest, **forged)
        with pytest.raises(BatchRefused):
            check_batch(batch(program=program.digest, pages=(), redirects=(row,)), asking, RECORD, 1)


def test_a_row_of_an_irrelevant_document_is_no_page() -> None:
    (visit,) = visits(
        batch(pages=(), rows=(IrrelevantRow(f"http://{HOST}/y", 200, "text/html", 9, "filter: text(x)"),))
    )
    assert visit.response.outcome is Outcome.IRRELEVANT and not visit.is_page and not visit.is_answered
    assert visit.task.relation == "crawler", "it is no seed of this crawl"
