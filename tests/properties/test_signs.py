"""The skim finds the signs of structured data on its way: never fewer than a search of all tags would."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.documents import skim as signs
from gossamer.documents.skim import MAX_PECULIAR, Skim

_SIGN = re.compile(signs.ANY)

_PARTS = st.sampled_from(
    [
        b'<div property="name">', b"<p ITEMSCOPE>", b'<a rel="dc:x" href=y>', b"<b Typeof = T>",
        b'<i title="a>b" property=x>', b'<i title="a<b" vocab=x>', b'<link itemprop="x" href=y>',
        b"<form property=x>", b"<meta itemprop=x>", b"</div>", b"</form>", b"<!-- > property=x -->",
        b"<!-- property=x", b"-->", b"<![CDATA[ property=x ]]>", b"<script>property=1</script>", b"<script>",
        b"</script>", b"<template>", b"</template>", b'text = "quote', b'"', b"'", b"<", b">", b"=", b" property",
        b"<svg>", b"</svg>", b"<textarea>", b"</textarea>", b"<noscript>", b"</noscript>", b"<p>", b"text ", b"<br",
        b"<frameset>", b"<plaintext>",
    ]
)  # fmt: skip


@given(st.lists(_PARTS, max_size=14), st.integers(0, 3))
def test_no_sign_in_a_tag_is_missed(parts: list[bytes], repeated: int) -> None:
    markup = b"<!doctype html><title>t</title><body>" + b"".join(parts) * (repeated + 1)
    skim = Skim(markup)
    exact = Skim(markup, exactly=True)
    in_tags = any(_SIGN.search(tag.raw) for tag in exact.tags if tag.start >= exact.head_end)
    in_spans = any(
        _SIGN.search(markup[begin:end].rpartition(b">")[0]) for begin, end in skim.spans if b"<" in markup[begin:end]
    )
    assert skim.has_sign or not (in_tags or in_spans)


@pytest.mark.parametrize(
    "tag", [b"<div property=x>", b"<link itemprop=x>", b'<i title="<" typeof=x>', b"<a rel='dc:x'>"]
)
def test_a_sign_is_seen_wherever_it_stands(tag: bytes) -> None:
    for before in (
        b"",
        b"<p>text</p>" * 1000,
        b"<form></form>" * (MAX_PECULIAR + 5),
        b'<i title="a>b">',
        b"<!-- > -->",
    ):
        assert Skim(b"<title>t</title><body>" + before + tag + b"text").has_sign
        if before.count(b"<form>") < MAX_PECULIAR:  # what is taken exactly errs to the safe side
            assert not Skim(b"<title>t</title><body>" + before + b"<script>a.property = 1</script> properties").has_sign
