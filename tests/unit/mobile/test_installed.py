"""Processors that crawlers may name: what the owner allows, and nothing else."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest

from gossamer.documents.document import Document
from gossamer.mobile.crawler import NamedProcessor
from gossamer.mobile.judging import GROUP, allowed_processors, processors_of
from gossamer.values.errors import UsageError
from gossamer.values.visit import Item


class Words:
    """A processor as another package offers one."""

    types = ("text/html",)

    def process(self, document: Document) -> Iterator[Item]:
        yield Item("title", document.url, document.title)


class Broken:
    def __init__(self) -> None:
        raise RuntimeError("no model")


class Typeless:
    def process(self, document: Document) -> tuple[()]:
        return ()


def entry(name: str, kind: type) -> EntryPoint:
    made: Any = EntryPoint(name, f"{__name__}:{kind.__name__}", GROUP)
    vars(made)["dist"] = SimpleNamespace(version="1.2")
    return made  # type: ignore[no-any-return]


ENTRIES = [entry("words", Words), entry("broken", Broken), entry("typeless", Typeless)]


def test_a_processor_is_made_where_the_owner_allows_it_by_name() -> None:
    found = processors_of(ENTRIES, ["words"])
    assert list(found) == [NamedProcessor("words", "1.2")]
    assert found[NamedProcessor("words", "1.2")].types == ("text/html",)
    assert processors_of(ENTRIES, []) == allowed_processors([]) == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wrods", "no processor 'wrods' is installed; did you mean 'words'?"),
        ("os:system", "no processor 'os:system' is installed"),
        ("broken", "'broken' cannot be made: RuntimeError: no model"),
        ("typeless", "'typeless' has to have a method `process` and media types"),
    ],
)
def test_a_processor_that_cannot_be_used_is_refused_before_any_crawler_runs(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        processors_of(ENTRIES, [name])
