"""The page that lists the decisions: written out of their headings, so that a new decision is listed by being there."""

from __future__ import annotations

from tools.checkout import ROOT

_FOLDER = ROOT / "docs" / "decisions"

#: The file that is written.
FILE = _FOLDER / "README.md"

_HEAD = """# Decisions

Each of these pages says what one choice was meant to achieve, what was chosen, and what it costs. `./gossamer dev docs` writes
this list.

"""


def text() -> str:
    pages = sorted(path for path in _FOLDER.glob("[0-9]*.md"))
    return _HEAD + "".join(f"- [{_title(path.read_text('utf-8'))}]({path.name})\n" for path in pages)


def _title(page: str) -> str:
    return page.partition("\n")[0].removeprefix("# ")
