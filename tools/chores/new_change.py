"""Begin a change fragment: `new-change KIND SLUG [TEXT...]`."""

from __future__ import annotations

import sys

from tools.checkout import CHANGES, ROOT
from tools.fragments import KINDS, NAME


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0] not in KINDS:
        kinds = "|".join(KINDS)
        print(f"usage: ./gossamer dev new-change {kinds} SLUG [TEXT...]", file=sys.stderr)
        return 2
    kind, slug, *words = arguments
    path = CHANGES / f"{slug}.{kind}.md"
    if NAME.fullmatch(path.name) is None:
        print(f"gossamer dev new-change: {slug!r} must be lower-case words joined by hyphens.", file=sys.stderr)
        return 2
    if path.exists():
        print(f"gossamer dev new-change: {path.relative_to(ROOT)} exists already.", file=sys.stderr)
        return 2
    path.write_text(" ".join(words) + "\n", encoding="utf-8")
    print(path.relative_to(ROOT))
    return 0
