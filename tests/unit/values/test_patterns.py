"""Regular expressions that wait for their first use."""

import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gossamer.values.patterns import lazy_automaton, lazy_pattern, spans_of

#: Imports the parts that a plain crawl has before its first request, and says how many expressions of this package it compiled.
COUNT = """
import re, sys
compiled = []
def counting(*arguments, compile=re.compile, **more):
    if "gossamer" in sys._getframe(1).f_code.co_filename:
        compiled.append(arguments[0])
    return compile(*arguments, **more)
re.compile = counting
import gossamer.agents.crawl, gossamer.parsing.html, gossamer.storage.archive.records, gossamer.frontier.robots.rules
print(len(compiled))
"""

#: Counts what reads pages alone, and takes 8 ms to load, among the imports of a crawl before its first request.
LOADED = """
import sys, gossamer.agents.crawl, gossamer.parsing.process_stage, gossamer.frontier.robots.provider
print(len({"html.entities", "re2", "webencodings"} & set(sys.modules)))
"""

#: Asks every expression of a module for its text.
ASK_ALL = """
import importlib, pkgutil, re, gossamer
from gossamer.values import patterns
asked = 0
for room in "values documents parsing storage frontier fetcher expressions crawls".split():
    place = importlib.import_module(f"gossamer.{room}")
    for found in pkgutil.walk_packages(place.__path__, f"gossamer.{room}."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if type(value).__name__ == "_LazyPattern":
                value.pattern, asked = value.pattern, asked + 1
print(asked)
"""


def printed(program: str) -> int:
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True)
    assert done.stdout, done.stderr
    return int(done.stdout)


def test_an_expression_does_what_a_compiled_one_does() -> None:
    text = lazy_pattern(r"(?P<letter>[a-c])\d", re.IGNORECASE)
    for _ in range(2):  # the second time by what the first one found
        assert [match["letter"] for match in text.finditer("A1 b2 d3")] == ["A", "b"]
    assert lazy_pattern(rb"[\t ]+").sub(b"_", b"a \tb") == b"a_b"


def test_an_expression_is_compiled_when_it_is_used_and_not_before() -> None:
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.match("")


def test_what_a_crawl_imports_compiles_few_expressions() -> None:
    assert printed(COUNT) <= 25


def test_what_reads_pages_alone_is_loaded_with_the_first_page() -> None:
    assert printed(LOADED) == 0


def test_every_expression_that_waits_can_be_compiled() -> None:
    assert printed(ASK_ALL) > 100


@pytest.mark.parametrize("is_anchored", [True, False])
def test_spans_are_found_by_the_inside_of_the_library_as_by_its_interface(is_anchored: bool) -> None:
    automaton: Any = lazy_automaton(rb"(a+)b?")
    inside = spans_of(SimpleNamespace(_regexp=automaton._regexp), is_anchored=is_anchored)
    interface = spans_of(SimpleNamespace(search=automaton.search, match=automaton.match), is_anchored=is_anchored)
    text = b"xaab aa\xff"
    for start in range(len(text)):
        for end in range(start, len(text) + 1):
            assert tuple(inside(text, start, end)[0]) == interface(text, start, end)[0], (start, end)
