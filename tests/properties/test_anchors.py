"""Texts of links that are folded together are the texts that each would be by itself."""

from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.documents.markup import MAX_FOLDED, all_folded, folded


def cut(pieces: str) -> list[str]:
    return pieces.split("|")


PIECES = cut("a|b c| |\n|\u00a0|\u2003|ä|\x01|\0|\r|&#1;|&#01|&#0;|&amp|&amp;|&#32;|&|&#|<|<b>|</b|<b|<!|>|;|1")
LONG = b"a " * MAX_FOLDED

texts = st.lists(st.sampled_from(PIECES), max_size=6).map(lambda parts: "".join(parts).encode())


@given(st.lists(texts, max_size=5))
@example([b"one", LONG, b"<b>two</b>"])
@example([b"one", LONG[: MAX_FOLDED - 1], b"<b", b"> two &amp", b"; three"])
@example([b"a&#1;b", b"c"])
@example([b"<b", b">"])
def test_texts_that_are_folded_together_do_not_mix(every: list[bytes]) -> None:
    assert all_folded(every) == [folded(text) for text in every]
