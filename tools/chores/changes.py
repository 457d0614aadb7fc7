"""Change fragments, the files changes/SLUG.KIND.md, and the change log that they are gathered into.

`new-change KIND SLUG [TEXT...]` begins one; `changelog` gathers all under the version of this checkout.
"""

import datetime
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tools import CHANGES, ROOT

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


def new_change(arguments: list[str]) -> int:
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


def gather(arguments: list[str]) -> int:
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
