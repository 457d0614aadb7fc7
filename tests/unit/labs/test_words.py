"""Relevance from words and example pages."""

import random
from pathlib import Path

import pytest

from gossamer.documents.terms import terms_of
from gossamer.engine.errors import SettingError
from gossamer.frontier.contract import LinkWords, PageWords
from gossamer.labs.focus import MOST_TERMS, WordsRelevance, WordsSheet, surroundings
from gossamer.testing import check_relevance

FILLER = [
    "menu",
    "home",
    "about",
    "contact",
    "privacy",
    "imprint",
    "page",
    "with",
    "the",
    "and",
    "some",
    "text",
    "that",
    "everybody",
    "has",
]
TOPIC = ["glacier", "moraine", "crevasse", "icefall", "serac", "firn", "ablation", "crampon", "bergschrund", "névé"]


def text(words: list[str], filler: int = 60, seed: int = 1) -> str:
    choose = random.Random(seed)
    made = words + choose.choices(FILLER, k=filler)
    choose.shuffle(made)
    return " ".join(made)


def test_it_keeps_its_contract(tmp_path: Path) -> None:
    check_relevance(WordsRelevance(WordsSheet(words=("word", "日本語"))))


def test_pages_with_the_words_are_more_relevant_than_those_without() -> None:
    relevance = WordsRelevance(WordsSheet(words=("glacier moraine", "crevasse")))
    full, half, none = (relevance.page(PageWords("u", "", text(words))) for words in (TOPIC, ["glacier"] * 3, []))
    assert full == 1.0 and none == 0.0 and none < half < full


def test_examples_say_what_a_topic_is_and_menus_count_for_nothing_in_the_end(tmp_path: Path) -> None:
    for number in range(3):
        body = text(TOPIC * 3, seed=number)
        (tmp_path / f"{number}.html").write_text(f"<html><body><p>{body}</p></body></html>", encoding="utf-8")
    relevance = WordsRelevance(WordsSheet(pages=tuple(str(path) for path in sorted(tmp_path.iterdir()))))
    for number in range(60):
        relevance.page(PageWords("u", "", text([], seed=number)))
    on_topic = relevance.page(PageWords("u", "", text(TOPIC)))
    off_topic = relevance.page(PageWords("u", "", text(["stock", "market", "shares"])))
    assert on_topic > 0.5 > off_topic


def test_a_link_is_judged_by_its_text_its_surroundings_and_its_page() -> None:
    relevance = WordsRelevance(WordsSheet(words=("glacier",)))
    page = PageWords("http://a.test/")
    named, around, url, nothing = (
        LinkWords("http://a.test/1", "The glacier"),
        LinkWords("http://a.test/2", "More", "about the glacier: more"),
        LinkWords("http://a.test/glacier.html", "More"),
        LinkWords("http://a.test/3", "More"),
    )
    poor = relevance.links([named, around, url, nothing], page, 0.0)
    assert poor[0] == poor[2] > poor[1] > poor[3] == 0.0
    rich = relevance.links([nothing], page, 1.0)
    assert rich[0] > poor[3], "what a relevant page links to is likelier relevant"


def test_scripts_without_spaces_have_words_too() -> None:
    relevance = WordsRelevance(WordsSheet(words=("氷河",)))
    assert relevance.page(PageWords("u", "", "この氷河は長い。")) > relevance.page(PageWords("u", "", "この河は長い。"))


def test_terms_are_few_whatever_a_page_holds(tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_text(" ".join(f"term{n}" for n in range(50_000)), encoding="utf-8")
    relevance = WordsRelevance(WordsSheet(pages=(str(file),)))
    relevance.page(PageWords("u", "", text(TOPIC)))
    assert len(relevance._profile) == MOST_TERMS
    assert terms_of("x" * 100_000).total() < 2_000


def test_a_topic_of_nothing_or_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="no words"):
        WordsRelevance(WordsSheet())
    with pytest.raises(SettingError, match="No such file"):
        WordsRelevance(WordsSheet(pages=(str(tmp_path / "none.html"),)))


def test_what_stands_around_a_link_is_found_by_its_address() -> None:
    markup = b"<p>Before the <a class=x href=\"a/b.html?x=1&amp;y=2\">first</a> link.</p><p><a href='/c'>second</a> end"
    found = surroundings(markup, ["a/b.html?x=1&y=2", "/c", "/missing"])
    assert "Before the" in found["a/b.html?x=1&y=2"] and "link." in found["a/b.html?x=1&y=2"]
    assert "second" in found["/c"] and "/missing" not in found
    assert "<" not in "".join(found.values())
