"""Differences of texts: right, and made in bounded time."""

from gossamer.recrawl.commands import COMPARED_LINES, differing


def applied(before: list[str], lines: list[str]) -> list[str]:
    """What a unified difference makes of the text before."""
    made, at = [], 0
    for line in lines:
        if line.startswith("@@"):
            start, _, count = line.split()[1].lstrip("-").partition(",")
            begin = int(start) - (0 if count == "0" else 1)
            made += before[at:begin]
            at = begin
        elif line[0] == "+":
            made.append(line[1:])
        else:
            assert before[at] == line[1:]
            at += 1
            if line[0] == " ":
                made.append(line[1:])
    return made + before[at:]


def test_a_difference_makes_one_text_of_the_other() -> None:
    before = [f"line {n}" for n in range(50)]
    after = ["first", *before[:10], "new", *before[12:40], *before[45:]]
    assert applied(before, differing(before, after, 3)) == after
    assert differing(before, before, 3) == []
    assert applied([], differing([], after, 3)) == after


def test_very_long_texts_are_shown_as_taken_out_and_put_in_whole() -> None:
    before = ["same", *["x", "y"] * COMPARED_LINES, "end"]
    after = ["same", *["y", "z", "x"] * COMPARED_LINES, "end"]
    lines = differing(before, after, 2)
    assert applied(before, lines) == after
    assert [line for line in lines if line[0] == " "] == [" same", " end"]
