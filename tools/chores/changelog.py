"""Gather changes/ into CHANGELOG.md under the version of this checkout; `changelog --draft` only prints it."""

from __future__ import annotations

import datetime
import re
import sys
import textwrap

from tools.checkout import ROOT
from tools.fragments import KINDS, SUMMARY, Fragment, paths, problems, read

CHANGELOG = ROOT / "CHANGELOG.md"
TITLE = "# Changes\n\nMade from changes/ by `./gossamer dev changelog`, newest first.\n"


def version() -> str:
    text = (ROOT / "src" / "gossamer" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    if found is None:
        raise SystemExit("src/gossamer/_version.py does not state __version__")
    return found[1]


def bullet(fragment: Fragment) -> str:
    first, *rest = fragment.text.split("\n\n")
    return "\n\n".join([f"- {first}".replace("\n", "\n  "), *(textwrap.indent(paragraph, "  ") for paragraph in rest)])


def section(fragments: list[Fragment], heading: str) -> str:
    """The section of one version: summaries as they are, then its other fragments under the headings of their kinds."""
    parts = [f"## {heading}", *(fragment.text for fragment in fragments if fragment.kind == SUMMARY)]
    for kind, title in KINDS.items():
        if kind == SUMMARY:
            continue
        of_kind = [bullet(fragment) for fragment in fragments if fragment.kind == kind]
        if of_kind:
            parts += [f"### {title}", "\n".join(of_kind)]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--draft"]):
        print("usage: ./gossamer dev changelog [--draft]", file=sys.stderr)
        return 2
    found = problems()
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    fragments = [read(path) for path in paths()]
    today = datetime.datetime.now(datetime.UTC).date()
    text = section(fragments, f"{version()} ({today.isoformat()})")
    if arguments or not fragments:
        print(text if fragments else "changes/ holds no fragment.")
        return 0
    before = CHANGELOG.read_text(encoding="utf-8") if CHANGELOG.exists() else TITLE
    if f"\n## {version()} " in before:
        print(f"CHANGELOG.md has {version()} already; raise src/gossamer/_version.py first.", file=sys.stderr)
        return 1
    CHANGELOG.write_text(before.replace(TITLE, f"{TITLE}\n{text}", 1), encoding="utf-8")
    for fragment in fragments:
        fragment.path.unlink()
    print(f"CHANGELOG.md: {version()}, {len(fragments)} changes")
    return 0
