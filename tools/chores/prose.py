"""Measure what is taken for the text of real pages: `gossamer dev prose FOLDER=SELECTOR...`.

Generators of documentation put what an author wrote into one element, and menus around it. The words of that element without `pre`
are what a text should have; a word of a text that is not there is boilerplate or code.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path

from resiliparse.extract.html2text import extract_plain_text
from selectolax.lexbor import LexborHTMLParser

from gossamer.documents import charset
from gossamer.documents.text import all_text, main_text

#: Pages of each folder, evenly spread; with fewer words than this, a page is a list of links.
PAGES, WORDS = 150, 50

#: A block is the template's if more than half of so many pages before have it.
REMEMBERED = 32

#: No prose inside the content: code, and what shows nothing.
NO_PROSE = "pre,script,style,template,noscript,nav,footer"


class Template:
    """The blocks that most of the last pages of a host had."""

    def __init__(self) -> None:
        self._last: deque[set[str]] = deque(maxlen=REMEMBERED)
        self._counts: Counter[str] = Counter()

    def learn(self, text: str) -> None:
        if len(self._last) == REMEMBERED:
            self._counts.subtract(self._last[0])
        self._last.append(set(text.splitlines()))
        self._counts.update(self._last[-1])

    def without(self, text: str) -> str:
        return "\n".join(line for line in text.splitlines() if self._counts[line] * 2 <= len(self._last))


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def agreement(found: Counter[str], right: Counter[str]) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean, by words."""
    common = sum((found & right).values())
    precision = common / found.total() if found else 0.0
    recall = common / right.total()
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


def pages_of(folder: Path, selector: str) -> Iterator[tuple[bytes, Counter[str]]]:
    files = sorted(path for path in folder.rglob("*.html*") if path.is_file() and not path.is_symlink())
    taken = 0
    for path in files[:: max(1, len(files) // (2 * PAGES))]:
        data = path.read_bytes()
        markup = charset.to_utf8(data, charset.sniff(data, "", ""))
        tree = LexborHTMLParser(markup)
        content = tree.css_first(selector)
        if content is None or taken == PAGES:
            continue
        for node in content.css(NO_PROSE):
            node.decompose()
        right = words(content.text(separator=" "))
        if right.total() >= WORDS:
            taken += 1
            yield markup, right


def timed(make: Callable[[bytes], str], markup: bytes) -> tuple[str, float]:
    began = time.process_time()
    text = make(markup)
    return text, time.process_time() - began


def measure(folder: Path, selector: str) -> dict[str, list[tuple[float, float, float, float]]]:
    """Precision, recall, F1 and CPU seconds of each way, page by page."""
    told: dict[str, list[tuple[float, float, float, float]]] = {}
    of_all, of_main = Template(), Template()

    for markup, right in pages_of(folder, selector):
        everything, seconds = timed(all_text, markup)
        main, seconds_of_main = timed(main_text, markup)
        ways = {
            "all": (everything, seconds),
            "main": (main, seconds_of_main),
            "resiliparse": timed(lambda data: extract_plain_text(data.decode(), main_content=True), markup),
            "all without template": (of_all.without(everything), seconds),
            "main without template": (of_main.without(main), seconds_of_main),
        }
        for name, (text, took) in ways.items():
            told.setdefault(name, []).append((*agreement(words(text), right), took))
        of_all.learn(everything)
        of_main.learn(main)
    return told


def main(arguments: list[str]) -> int:
    """Measure; 0 where there was something to measure."""
    every: dict[str, list[tuple[float, float, float, float]]] = {}
    for argument in arguments:
        folder, _, selector = argument.partition("=")
        told = measure(Path(folder), selector or "body")
        print(f"{folder}: {len(next(iter(told.values()), []))} pages")
        for name, rows in told.items():
            _show(name, rows)
            every.setdefault(name, []).extend(rows)
    print("all of them, by pages")
    for name, rows in every.items():
        _show(name, rows)
    return 0 if every else 1


def _show(name: str, rows: list[tuple[float, float, float, float]]) -> None:
    precision, recall, both, _ = (statistics.mean(column) for column in zip(*rows, strict=True))
    seconds = statistics.median(row[3] for row in rows)
    print(f"  {name:24} precision {precision:.3f}  recall {recall:.3f}  F1 {both:.3f}  {seconds * 1000:.2f} ms")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
