"""A monitor of works and marks on the web: a processor and a wiring for Gossamer. See README.md."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec

from gossamer.crawls.compiling import shipped
from gossamer.documents.document import Document
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ProviderPlan, Wiring, to_toml
from gossamer.values.visit import Item

#: Elements whose text is not read.
UNREAD: set[str | None] = {"script", "style", "template", "noscript", "title"}

#: Characters of a passage, or around a mark, that are reported.
SHOWN = 160

_WORD = re.compile(r"\w+")

_LOADED = "works are read when the crawl starts"


class MonitorSheet(Sheet, frozen=True):
    """What to look for, and when to speak."""

    works: Annotated[str, setting("Folder of text files; empty: none.", restart=_LOADED)] = ""
    marks: Annotated[str, setting("File with a mark on each line; empty: none.", restart=_LOADED)] = ""
    words: Annotated[int, setting("Words of a shingle.", unit="words", restart=_LOADED, ge=2)] = 8
    passage: Annotated[int, setting("Words in a row of a work that a page must have.", unit="words", ge=2)] = 20


class Monitor(Provider[MonitorSheet]):
    """Compares pages with works and marks. Contract: `processing.Processor`."""

    async def start(self) -> None:
        """Read the works."""
        self._names: list[str] = []
        self._sizes: list[int] = []
        self._index: dict[int, list[int]] = {}
        for path in _texts(self.sheet.works):
            self._add(path.name, path.read_text("utf-8", errors="replace"))
        lines = Path(self.sheet.marks).read_text("utf-8").splitlines() if self.sheet.marks else []
        marks = [r"\W+".join(map(re.escape, words)) for words in map(_WORD.findall, lines) if words]
        # The longest first: of two that begin alike the regular expression takes the one that it meets first.
        either = "|".join(sorted(marks, key=len, reverse=True))
        self._marks = re.compile(rf"\b(?:{either})\b", re.IGNORECASE) if marks else None
        self.metrics.gauge("shingles", lambda: len(self._index))

    def _add(self, name: str, text: str) -> None:
        shingles = set(self._shingles([match[0].casefold() for match in _WORD.finditer(text)]))
        number = len(self._names)
        self._names.append(name)
        self._sizes.append(len(shingles))
        for shingle in shingles:
            self._index.setdefault(shingle, []).append(number)

    def process(self, document: Document) -> Iterator[Item]:
        """An item for each work and mark that the page uses."""
        text = text_of(document)
        yield from self._uses_of_works(document.url, text)
        if self._marks is not None:
            places: dict[str, list[int]] = {}
            for match in self._marks.finditer(text):
                mark = " ".join(_WORD.findall(match[0])).casefold()
                places.setdefault(mark, []).append(match.start())
            for mark, starts in places.items():
                around = text[max(0, starts[0] - SHOWN // 2) : starts[0] + SHOWN // 2]
                yield Item("mark", document.url, {"mark": mark, "times": len(starts), "text": around})

    def _uses_of_works(self, url: str, text: str) -> Iterator[Item]:
        found = list(_WORD.finditer(text))
        shingles = self._shingles([match[0].casefold() for match in found])
        runs: dict[int, tuple[int, int]] = {}  # where the run that goes on began, and where it was last seen
        best: dict[int, tuple[int, int]] = {}  # the longest run: its length in shingles, and its beginning
        seen: dict[int, set[int]] = {}
        for place, shingle in enumerate(shingles):
            for work in self._index.get(shingle, ()):
                began, last = runs.get(work, (place, place - 1))
                began = began if last == place - 1 else place
                runs[work] = began, place
                best[work] = max(best.get(work, (0, 0)), (place - began + 1, began))
                seen.setdefault(work, set()).add(shingle)
        for work, (length, began) in sorted(best.items()):
            words = length + self.sheet.words - 1
            if words >= min(self.sheet.passage, self._sizes[work] + self.sheet.words - 1):
                passage = text[found[began].start() : found[began + words - 1].end()]
                share = len(seen[work]) / self._sizes[work]
                use = {"work": self._names[work], "share": round(share, 4), "words": words, "text": passage[:SHOWN]}
                yield Item("work", url, use)

    def _shingles(self, words: Sequence[str]) -> list[int]:
        """A number for each run of words: Python's own hash, which is keyed anew in each process."""
        size = self.sheet.words
        return [hash(tuple(words[at : at + size])) for at in range(len(words) - size + 1)]


def _texts(folder: str) -> list[Path]:
    if folder and not Path(folder).is_dir():
        raise SettingError(f"setting 'works': {folder} is no folder")
    return sorted(Path(folder).glob("*.txt")) if folder else []


def text_of(document: Document) -> str:
    """What a reader sees of a page, white space folded."""
    if document.mime == "text/plain":
        return " ".join(document.markup.decode("utf-8", "replace").split())
    body = document.tree.body
    nodes = body.traverse(include_text=True) if body is not None else ()
    texts = ((node.text_content or "", node.parent) for node in nodes if node.tag == "-text")
    parts = [text for text, parent in texts if parent is not None and parent.tag not in UNREAD]
    return " ".join(" ".join(parts).split())


def wiring() -> Wiring:
    """The shipped wiring, with the monitor among the processors of texts."""
    plain = shipped("default")
    process = plain.components["process"]
    read = dict(cast("dict[str, Any]", process.providers["processors"]))
    for mime in ("text/html", "application/xhtml+xml", "text/plain"):
        known = read.get(mime, [])
        read[mime] = [*([known] if isinstance(known, str) else known), "monitor"]
    process = msgspec.structs.replace(process, providers={**process.providers, "processors": read})
    return msgspec.structs.replace(
        plain,
        description="Works and marks",
        components={**plain.components, "process": process},
        providers={**plain.providers, "monitor": ProviderPlan(use="monitor")},
    )


def report(crawl: str) -> str:
    """The pages of a crawl that use something, those that use most first."""
    lines: list[tuple[float, str]] = []
    totals: Counter[str] = Counter()
    with Path(crawl, "logs", "crawl.jsonl").open("rb") as rows:
        for row in map(msgspec.json.decode, rows):
            if row["event"] != "item" or row["kind"] not in ("work", "mark"):
                continue
            use = row["data"]
            totals[row["kind"]] += 1
            if row["kind"] == "work":
                what = f"{use['share']:.0%} of {use['work']}, {use['words']} words in a row"
            else:
                what = f"{use['mark']!r} {use['times']} times"
            weight = use["share"] if row["kind"] == "work" else 0.0
            lines.append((-weight, f"{row['url']}\n    {what}\n    ... {use['text']} ..."))
    head = f"{totals['work']} uses of works, {totals['mark']} of marks"
    return "\n".join([head, *(text for _, text in sorted(lines))])


def main() -> None:
    """`web-monitor wiring` or `web-monitor report CRAWL`."""
    if sys.argv[1:] == ["wiring"]:
        print(to_toml(wiring()))
    elif sys.argv[1:2] == ["report"] and len(sys.argv) == 3:
        print(report(sys.argv[2]))
    else:
        sys.exit("usage: web-monitor wiring | web-monitor report CRAWL")


if __name__ == "__main__":
    main()
