"""`gossamer why` is exact: each URL's story names the page, the rule, the target or the first of its like that decided."""

from pathlib import Path
from typing import Any

import pytest

from gossamer.analysis.traces import Story
from gossamer.analysis.why import story_of
from gossamer.cli.query import story_lines
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.task import Task

WORDS = " ".join(f"Sentence {number} of a page about rivers and those who cross them." for number in range(80))


def redirect(target: str) -> FakePage:
    return FakePage("", status=302, headers=(("Location", target),))


SITE = {
    "/": '<a href="/a">a</a><a rel=nofollow href="/disowned">x</a><a href="/moved">m</a><a href="/round">r</a>'
    '<a href="/self">s</a><a href="/left">l</a><a href="/mail">t</a>',
    "/a": '<a href="/deep">d</a><a href="/copy">c</a><a href="/like">k</a>' + WORDS,
    "/copy": '<a href="/deep">d</a><a href="/copy">c</a><a href="/like">k</a>' + WORDS,
    "/like": '<a href="/deep">d</a><a href="/copy">c</a><a href="/like">k</a>' + WORDS.replace("Sentence 40", "Phrase"),
    "/deep": '<a href="/deeper">e</a>',
    "/moved": redirect("/new"),
    "/new": redirect("/newest"),
    "/newest": "here",
    "/round": redirect("/and"),
    "/and": redirect("/round"),
    "/self": redirect("/self"),
    "/left": redirect("http://elsewhere.test/"),
    "/mail": redirect("mailto:somebody@example.org"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tells the story of a path of one small site that was crawled to depth 2."""
    folder = tmp_path_factory.mktemp("story") / "c"
    with FakeWeb(SITE) as web:
        options = {"output": str(folder), "delay": 0, "depth": 2, "near_duplicates": "report", "exclude": ["/never"]}
        run(Crawl([web.url("/")], build(all_options(), options)))

        def tell(path: str) -> tuple[Story, str]:
            story = story_of(folder, web.url(path))
            return story, story.told.replace(web.url("/"), "/")

        yield tell


def test_a_refused_link_names_its_page_and_the_rule(told: Any) -> None:
    story, words = told("/disowned")
    assert story.state == "refused"
    assert words == "/ links to it by `a href`, and filter nofollow refuses it at gate follow: nofollow"
    assert [(link.nofollow, link.verdict) for link in story.links] == [(True, "nofollow: nofollow")]


def test_what_lies_too_deep_names_the_page_and_the_depth(told: Any) -> None:
    story, words = told("/deeper")
    assert story.state == "refused"
    assert words == "/deep links to it by `a href`, which is at depth 2, and the crawl goes no deeper than 2"


def test_a_url_that_nobody_has_met_is_told_as_such(told: Any) -> None:
    assert told("/nowhere")[0].state == told("/never/x")[0].state == "unknown"
    assert told("/nowhere")[1] == "it was not found: no page that was processed so far links to it"
    assert told("/never/x")[1].endswith("; filter patterns would refuse it at gate follow: exclude")


def test_a_redirect_tells_where_it_leads(told: Any) -> None:
    assert told("/moved")[1].endswith("; it leads to /new, then /newest")
    assert told("/left")[1].endswith("; it leads to http://elsewhere.test/; the crawl does not follow it: scope:host")
    assert told("/mail")[1].endswith(
        "; it leads to mailto:somebody@example.org; the crawl does not follow it: scheme:mailto"
    )


def test_a_loop_of_redirects_is_told_as_one(told: Any) -> None:
    assert told("/round")[1].endswith("; it leads to /and, then back to /round, which is a loop")
    assert told("/self")[1].endswith("; it leads to itself, which is a loop")


def test_a_loop_whose_answers_set_cookies_names_the_option(tmp_path: Path) -> None:
    moved = (("Location", "/door"), ("Set-Cookie", "in=1"))
    site = {"/": '<a href="/door">d</a>', "/door": FakePage("", status=302, headers=moved)}
    with FakeWeb(site) as web:
        for cookies, hint in (
            ("off", ", but an answer set a cookie, which --cookies host would send back"),
            ("host", ""),
        ):
            options = {"output": str(tmp_path / cookies), "delay": 0, "cookies": cookies}
            run(Crawl([web.url("/")], build(all_options(), options)))
            told = story_of(tmp_path / cookies, web.url("/door")).told
            assert told.endswith(f"; it leads to itself, which is a loop{hint}")


def test_duplicates_name_the_first_url_of_their_like(told: Any) -> None:
    stories = [told(path) for path in ("/a", "/copy", "/like")]
    copies = [(story, words) for story, words in stories if story.duplicate_of]
    assert len(copies) == 1
    assert "; its document is the same as that of /" in copies[0][1] and copies[0][1].endswith(", byte for byte")
    likes = [words for story, words in stories if story.near_duplicate_of]
    assert likes and all("; its text is nearly the same as that of /" in words for words in likes)
    assert any(line.startswith("same as: ") for line in story_lines(copies[0][0]))


def test_a_task_for_later_is_not_taken_for_one_whose_url_begins_it(tmp_path: Path) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    with ledger.group() as group:
        group.later(Task("http://a.test/err", "a.test", attempt=2), 5_000_000_000.0)
    assert ledger.waiting("http://a.test/er", 9) is None
    assert ledger.waiting("http://a.test/err", 9) is not None
    ledger.close()
