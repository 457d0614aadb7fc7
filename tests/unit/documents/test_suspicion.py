"""The check that keeps pages from the parser."""

import pytest

from gossamer.documents.document import MAX_DEPTH, MAX_TAGS, suspicion
from gossamer.documents.markup import MAX_ATTRIBUTES

DEEP = 2 * MAX_DEPTH


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (b"<br>" * (MAX_TAGS + 1), "too_many_tags"),
        (b"<div>" * DEEP, "too_deep"),
        (b"<div>" * DEEP + b"</div>" * DEEP, "too_deep"),
        (b"<a>" * DEEP + b"</a>" * DEEP + b"<p>" * 9, "too_deep"),
        (b"<div></x>" * 3 * DEEP, "too_deep"),
        (b"<div></x>" * 6 * DEEP, "too_deep"),
        (b"<template>" + b"<div></x>" * 6 * DEEP, "too_deep"),
        (b"<head><template><svg>" + b"<g></x>" * 6 * DEEP, "too_deep"),
        (b"<form></x>" * 6 * DEEP, "too_deep"),
        (b"<div><!--</div>-->" * 2 * DEEP, "too_deep"),
        (b'<div title="</div>">' * 4 * DEEP, "too_deep"),
        (b"<div><title></div></title>" * 2 * DEEP, "too_deep"),
        (b"<div><i </div>" * 4 * DEEP, "too_deep"),
        (b"<div><!x </div>" * 4 * DEEP, "too_deep"),
        (b"<div><script x='</script>'></div></script>" * 2 * DEEP, "too_deep"),
        (b'<p a=b="><div>' * 2 * DEEP, "too_deep"),
        (b'<p a="x"="><div>' * 2 * DEEP, "too_deep"),
        (b"<a " + b" ".join(b"a%d" % n for n in range(2 * MAX_ATTRIBUTES)) + b">", "too_many_attributes"),
        (b"<a " + b"/".join(b"a%d=''" % n for n in range(2 * MAX_ATTRIBUTES)), "too_many_attributes"),
    ],
)
def test_hostile_shapes_are_noticed(page: bytes, reason: str) -> None:
    assert suspicion(page) == reason
    assert suspicion(page.upper()) == reason


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"<p>a<br>" * 20_000,
        b"<ul>" + b"<li>x" * 20_000 + b"</ul>",
        b"<table>" + b"<tr><td>x" * 20_000 + b"</table>",
        b"<div><a href=x>y</a></div>" * 20_000,
        b"<script>" + b"x " * 100_000 + b"</script>",
        b"<img src='data:" + b"x" * 1_000_000 + b"'>",
        b"<pre>" + b"no markup at all " * 10_000 + b"</pre>",
        b"<!--" + b"<div>" * 20_000 + b"-->",
        b"<script>" + b"<div>" * 20_000 + b"</script>",
    ],
)
def test_large_pages_of_ordinary_shape_pass(page: bytes) -> None:
    assert suspicion(page) == ""
