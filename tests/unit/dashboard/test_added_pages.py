"""Pages that packages add to the dashboard: their code takes no more time, memory or room than it may, and breaks nothing."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.dashboard.questions import ROWS, TEXT, PageName, Questions, page_names
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import UsageError

PACKAGE = """
import os, sys
from gossamer.dashboard.contract import DashboardPage
from gossamer.engine.subjects import Subject

TITLES = ("Good", "Odd/title", "Huge", "Raises", "Exits", "Vanishes", "Prints", "Wrong", "Hangs", "Eats", "Torn")
SUBJECT = Subject("wild", "Wild", pages={title: f"wild:{title.split('/')[0].lower()}" for title in TITLES})
SCRIPT = "<script>window.pwned = 1</script>"

good = lambda crawl: DashboardPage(SCRIPT, f"{SCRIPT} of {crawl.name}", [SCRIPT, "n"], [[SCRIPT, 1], [None, {"a": 2.5}]])
odd = lambda crawl: DashboardPage(text="x")
huge = lambda crawl: DashboardPage("t", "x" * 1_000_000, ["n", "text"], ([n, "y" * 10_000] for n in range(10**12)))
exits = lambda crawl: sys.exit(0)
vanishes = lambda crawl: os._exit(0)
wrong = lambda crawl: {"title": 3}
eats = lambda crawl: bytearray(1 << 40)
torn = lambda crawl: DashboardPage(text="\\ud800")

def raises(crawl):
    raise ZeroDivisionError("no tide\\nhere")

def prints(crawl):
    print('{"text": "not mine"}')
    return DashboardPage(text="mine")

def hangs(crawl):
    while True:
        pass
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package, installed."""
    info = tmp_path / "wild-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wild\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gossamer.subjects]\nwild = wild:SUBJECT\n")
    (tmp_path / "wild.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))


def asked(title: str, seconds: float = HUNG_AFTER) -> Any:
    return msgspec.json.decode(asyncio.run(Questions(seconds).page(Path("/crawls/one"), title)))


def test_pages_are_named_and_a_page_that_no_subject_has_starts_no_process() -> None:
    assert PageName("Good", "wild") in page_names()
    with pytest.raises(UsageError, match="no subject has a page"):
        asked("Nowhere")


def test_text_and_table_of_a_page_are_sent_as_data() -> None:
    found = asked("Good")
    script = "<script>window.pwned = 1</script>"
    assert (found["text"], found["is_cut"], found["table"]["title"]) == (f"{script} of one", False, script)
    assert (found["table"]["columns"], found["table"]["rows"]) == ([script, "n"], [[script, 1], [None, {"a": 2.5}]])
    assert asked("Odd/title")["table"]["title"] == "Odd/title", "without a title of its own it has the declared one"


def test_no_more_of_a_page_is_sent_than_a_browser_shows() -> None:
    found = asked("Huge")
    assert (len(found["text"]), found["is_cut"]) == (TEXT, True)
    assert (len(found["table"]["rows"]), found["table"]["is_more"]) == (ROWS, True)
    assert max(len(row[1]) for row in found["table"]["rows"]) < 10_000


def test_a_page_that_prints_keeps_its_answer_whole() -> None:
    assert asked("Prints")["text"] == "mine"


@pytest.mark.parametrize(
    ("title", "told"),
    [
        ("Raises", "page 'Raises' of subject 'wild' failed: ZeroDivisionError: no tide here"),
        ("Exits", "failed: SystemExit: 0"),
        ("Vanishes", "there is no answer"),
        ("Wrong", "failed: ValidationError"),
        ("Eats", "needs more time or memory"),
        ("Torn", "failed: UnicodeEncodeError"),
    ],
)
def test_a_page_that_fails_is_an_error_in_words_that_names_page_and_subject(title: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        asked(title)
    assert told in str(refused.value)


def test_a_page_that_takes_too_long_is_killed() -> None:
    with pytest.raises(UsageError, match="no answer within 1 seconds"):
        asked("Hangs", seconds=1.0)
