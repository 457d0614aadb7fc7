"""Change fragments, the files changes/SLUG.KIND.md: what makes one well-formed, and how they are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tools.checkout import CHANGES

# Kind -> heading in CHANGELOG.md, in the order in which a reader wants them. A summary stands under that of the version, as prose.
SUMMARY = "summary"
KINDS = {
    SUMMARY: "",
    "security": "Security",
    "removed": "Removed",
    "changed": "Changed",
    "added": "Added",
    "fixed": "Fixed",
    "faster": "Faster",
}
NAME = re.compile(r"(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)\.(?P<kind>[a-z]+)\.md")


@dataclass(frozen=True)
class Fragment:
    path: Path
    slug: str
    kind: str
    text: str


def paths(folder: Path = CHANGES) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != "README.md" and not path.name.startswith("."))


def read(path: Path) -> Fragment:
    """The fragment at `path`; ValueError says in one line what is wrong with it."""
    match = NAME.fullmatch(path.name)
    if match is None or match["kind"] not in KINDS:
        raise ValueError(f"changes/{path.name}: the name must be SLUG.KIND.md, KIND one of {', '.join(KINDS)}")
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        raise ValueError(f"changes/{path.name}: is empty; say in a sentence what changed for the user")
    if text.startswith(("#", "-", "*")) or not text.endswith((".", "!", "`", ")")):
        raise ValueError(f"changes/{path.name}: must be sentences, without heading or bullet, ending in a full stop")
    return Fragment(path, match["slug"], match["kind"], text)


def problems(folder: Path = CHANGES) -> list[str]:
    """For `check`: one line for each fragment that is not well-formed."""
    found = []
    for path in paths(folder):
        try:
            read(path)
        except ValueError as error:
            found.append(str(error))
    return found
