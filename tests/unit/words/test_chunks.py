"""Chunks of Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.documents.markdown import as_markdown
from gossamer.words.chunks import chunks, count_words, ids_of

PAGE = """Before all.

# Guide

One two three.

## First *steps*

Four five.

```python
# no heading
x = 1
```

### [Deep](http://a.test/)

Six.

## Second

Seven.
"""


def test_a_chunk_stands_under_the_headings_of_its_section() -> None:
    found = list(chunks(PAGE))
    assert [chunk.headings for chunk in found] == [
        (), ("Guide",), ("Guide", "First steps"), ("Guide", "First steps", "Deep"), ("Guide", "Second"),
    ]  # fmt: skip
    assert found[2].text == "Four five.\n\n```python\n# no heading\nx = 1\n```"


@given(st.text(alphabet="ab \n#`|-漢", max_size=400), st.integers(1, 9))
def test_no_chunk_has_more_words_than_asked_for_and_no_word_is_lost(page: str, most: int) -> None:
    found = list(chunks(page, most))
    assert all(0 < chunk.words <= most or not chunk.text.strip("`~|-: \n") for chunk in found)
    told = "".join(chunk.text + "".join(chunk.headings) for chunk in found)
    lost = [letter for letter in "ab漢" if letter in page and letter not in told]
    assert not lost or "#" in page  # a heading without a text under it is in no chunk


def test_long_tables_and_listings_are_cut_between_lines_and_stay_such() -> None:
    table = "| a | b |\n| - | - |\n" + "\n".join(f"| {number} | x |" for number in range(40))
    parts = [chunk.text for chunk in chunks(table, 30)]
    assert len(parts) > 3 and all(part.startswith("| a | b |\n| - | - |\n|") for part in parts)
    listing = "```sh\n" + "\n".join(f"run {number}" for number in range(40)) + "\n```"
    parts = [chunk.text for chunk in chunks(listing, 20)]
    assert len(parts) > 3 and all(part.startswith("```sh\n") and part.endswith("\n```") for part in parts)


@pytest.mark.parametrize("text", ["word " * 1_000, "漢" * 1_000, "x" * 10_000])
@pytest.mark.parametrize("most", [1, 7, 300])
def test_one_element_without_end_is_cut(text: str, most: int) -> None:
    found = list(chunks(text, most))
    assert all(chunk.words <= most for chunk in found)
    assert "".join(chunk.text for chunk in found).replace(" ", "") == text.replace(" ", "")


def test_an_overlap_repeats_the_last_words_of_the_chunk_before() -> None:
    found = [chunk.text for chunk in chunks("a b c d\n\ne f g h\n\ni j k l", 6, 2)]
    assert found == ["a b c d", "c d\n\ne f g h", "g h\n\ni j k l"]


def test_an_id_is_that_of_the_same_text_under_the_same_headings_wherever_it_stands() -> None:
    one = list(chunks(PAGE))
    other = list(chunks(PAGE.replace("Before all.", "Changed.\n\n# New\n\nText.")))
    before, after = ids_of("http://a.test/", one), ids_of("http://a.test/", other)
    assert before[1:] == after[2:] and before[0] not in after
    assert set(ids_of("http://b.test/", one)).isdisjoint(before)
    twice = list(chunks("# A\n\nsame\n\n# A\n\nsame"))
    assert len(set(ids_of("http://a.test/", twice))) == 2


def test_an_anchor_leads_to_the_heading_of_a_chunk() -> None:
    prose = "The committee has decided that the old bridge over the river will be replaced. " * 3
    page = (
        f"<main><h1 id=top>A</h1><p>{prose}<section id='two'><h2>B</h2><p>{prose}</section><h2>C</h2><p>{prose}</main>"
    )
    found = list(chunks(as_markdown(page.encode(), "http://a.test/", anchors=True).text))
    assert [(chunk.headings[-1], chunk.anchor) for chunk in found] == [("A", "top"), ("B", "two"), ("C", "")]
    assert count_words(found[0].text) == found[0].words == 42
