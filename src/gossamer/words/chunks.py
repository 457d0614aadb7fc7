"""Markdown cut into chunks for retrieval: along its headings, each of a bounded number of words, with a stable id.

Place in the flow: :mod:`gossamer.words.exporting` cuts the pages of a crawl. Pure and linear.

Promises: a chunk lies within one section and says which headings it stands under; no chunk has more words than asked for, but for
the overlap; a table or a listing is cut between lines, with its first lines again where it is a table; the id depends on URL,
headings and text alone, so the same chunk has the same id in the next crawl, whatever happened around it.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from gossamer.documents.markdown import MARK_END, MARK_START

#: Words of a chunk, and of the one before that are repeated, where nothing else is asked for: models of today take 512 tokens.
WORDS, OVERLAP = 300, 0

#: Most characters that count as one word: `aaaa...` of a megabyte has many.
_LONG_WORD = 24

_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ANCHOR = re.compile(f"{MARK_START}([^{MARK_END}]*){MARK_END}")
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?:[^()\s]|\([^()]*\))*(?:\s+\"[^\"]*\")?\)")
#: A word: letters and digits, or one character of a script without spaces.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\s{_UNSPACED}]{{1,{_LONG_WORD}}}")


class Chunk(NamedTuple):
    """A piece of a page."""

    headings: tuple[str, ...]
    """Those that it stands under, the outermost first."""
    anchor: str
    """The fragment of the URL that leads to its heading; empty where the page has none."""
    text: str
    """Markdown, without the headings."""
    words: int


def count_words(text: str) -> int:
    """How many words a text has; a character of a script without spaces is one."""
    return sum(1 for _ in _WORD.finditer(text))


def chunks(markdown: str, words: int = WORDS, overlap: int = OVERLAP) -> Iterator[Chunk]:
    """The chunks of a page, with marks of anchors or without, in order. Each has `words` words at most, at least 1, and repeats
    `overlap` words, fewer than these, of the chunk before in the same section."""
    for headings, anchor, blocks in _sections(markdown):
        held: list[str] = []
        count, is_new = 0, False
        for block in _pieces(blocks, words):
            size = count_words(block)
            if is_new and count + size > words:
                yield Chunk(headings, anchor, "\n\n".join(held), count)
                tail = _tail("\n\n".join(held), min(overlap, words - size)) if overlap else ""
                held, count = ([tail], count_words(tail)) if tail else ([], 0)
            held.append(block)
            count += size
            is_new = True
        if is_new:
            yield Chunk(headings, anchor, "\n\n".join(held), count)


def ids_of(url: str, found: "list[Chunk]") -> list[str]:
    """Their ids: a digest of URL, headings and text; where a page says the same twice under one heading, of the number as well."""
    seen: Counter[bytes] = Counter()
    ids = []
    for chunk in found:
        digest = hashlib.sha256("\0".join((url, *chunk.headings, "", chunk.text)).encode("utf-8", "replace"))
        seen[digest.digest()] += 1
        if (number := seen[digest.digest()]) > 1:
            digest.update(f"\0{number}".encode())
        ids.append(digest.hexdigest()[:32])
    return ids


def _sections(markdown: str) -> Iterator[tuple[tuple[str, ...], str, list[str]]]:
    """Headings, anchor and blocks of each section that has any; a block is a paragraph, a list, a table or a listing."""
    path: list[tuple[int, str, str]] = []
    blocks: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if fence or mark:
            lines.append(line)
            if not fence and mark:
                fence = mark[1]
            elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        heading = _HEADING.match(line)
        if heading or not line.strip():
            if lines:
                blocks.append("\n".join(lines))
                lines = []
        else:
            lines.append(line)
        if heading:
            if blocks:
                yield tuple(name for _, name, _ in path if name), _anchor(path), blocks
                blocks = []
            level = len(heading[1])
            path = [one for one in path if one[0] < level]
            marked = _ANCHOR.search(heading[2])
            # Without links, anchors and emphasis.
            name = _LINK.sub(r"\1", _ANCHOR.sub("", heading[2])).replace("*", "").replace("`", "").strip(" #")
            path.append((level, name, marked[1] if marked else ""))
    if lines:
        blocks.append("\n".join(lines))
    if blocks:
        yield tuple(name for _, name, _ in path if name), _anchor(path), blocks


def _anchor(path: "list[tuple[int, str, str]]") -> str:
    return path[-1][2] if path else ""


def _pieces(blocks: list[str], words: int) -> Iterator[str]:
    """The blocks, those that are too long in pieces."""
    for marked in blocks:
        block = _ANCHOR.sub("", marked)
        if count_words(block) <= words:
            if block.strip():
                yield block
            continue
        yield from _cut(block, words)


def _cut(block: str, words: int) -> Iterator[str]:
    """A long block between its lines, and a long line between its words."""
    lines = block.split("\n")
    head: list[str] = []
    tail: list[str] = []
    if _FENCE.match(lines[0]) and len(lines) > 2:
        head, tail, lines = lines[:1], ["```" if "`" in lines[0] else "~~~"], lines[1:-1]
    elif lines[0].startswith("|") and len(lines) > 2 and set(lines[1]) <= set("|-: "):
        head, lines = lines[:2], lines[2:]
    spent = count_words("\n".join(head + tail))
    if spent >= words:  # no room for what comes again
        head, tail, spent = [], [], 0
    held: list[str] = []
    count = spent
    for line in lines:
        for piece in _cut_line(line, words - spent):
            size = count_words(piece)
            if held and count + size > words:
                yield "\n".join(head + held + tail)
                held, count = [], spent
            held.append(piece)
            count += size
    if any(line.strip() for line in held):
        yield "\n".join(head + held + tail)


def _cut_line(line: str, words: int) -> Iterator[str]:
    ends = [match.end() for match in _WORD.finditer(line)]
    if len(ends) <= words:
        yield line
        return
    start = 0
    for at in range(words - 1, len(ends) + words - 1, words):
        end = ends[min(at, len(ends) - 1)]
        if piece := line[start:end].strip():
            yield piece
        start = end


def _tail(text: str, words: int) -> str:
    """The last words of a text."""
    if words <= 0:
        return ""
    starts = [match.start() for match in _WORD.finditer(text)]
    return text[starts[-min(words, len(starts))] :] if starts else ""
