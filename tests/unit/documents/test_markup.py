"""The tokenizer's rules: attributes, references, and where things end."""

from gossamer.documents.markup import TAG, attributes


def test_attributes_are_read_as_a_browser_reads_them() -> None:
    tag = TAG.match(b"""<a HREF = "?a=1&amp;b=2&copy=3&#x26;c=4&lt" href=second x=y"z' e empty= >""")
    assert tag is not None
    assert attributes(tag["attributes"]) == {"href": "?a=1&b=2&copy=3&c=4<", "x": "y\"z'", "e": "", "empty": ""}
