"""Write docs/reference/ and the API's keywords out of the code; `docs --check` only says whether they are fresh."""

from __future__ import annotations

import importlib.util
import sys

from tools import keywords
from tools.checkout import REFERENCE, ROOT

SOURCE = "gossamer.cli.reference"


def pages() -> dict[str, str] | None:
    """File name -> text of every generated page; None where this checkout has no generator."""
    if importlib.util.find_spec(SOURCE) is None:
        return None
    made: dict[str, str] = importlib.import_module(SOURCE).pages()
    return made


def stale(made: dict[str, str]) -> list[str]:
    """Pages on disk that differ from the code, are missing, or belong to nothing any more."""
    on_disk = {path.relative_to(REFERENCE).as_posix(): path for path in REFERENCE.rglob("*.md")}
    differing = [name for name, text in made.items() if name not in on_disk or on_disk[name].read_text("utf-8") != text]
    return sorted(differing + [name for name in on_disk if name not in made])


def problems() -> list[str]:
    """For `check`: one line for each page that is not fresh."""
    made = pages()
    if not made:
        return []
    found = [f"docs/reference/{name}" for name in stale(made)]
    if not are_keywords_fresh():
        found.append(keywords.FILE.relative_to(ROOT).as_posix())
    return [f"{name} is stale; run ./gossamer dev docs" for name in found]


def are_keywords_fresh() -> bool:
    """Whether the module of keywords says what the table of options says."""
    return keywords.FILE.exists() and keywords.FILE.read_text("utf-8") == keywords.text()


def write(made: dict[str, str]) -> None:
    if not are_keywords_fresh():
        keywords.FILE.write_text(keywords.text(), encoding="utf-8")
        print(f"wrote {keywords.FILE.relative_to(ROOT)}")
    for name in stale(made):
        path = REFERENCE / name
        if name in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[name], encoding="utf-8")
        else:
            path.unlink()
        print(f"{'wrote' if name in made else 'removed'} {path.relative_to(ROOT)}")


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: ./gossamer dev docs [--check]", file=sys.stderr)
        return 2
    made = pages()
    if made is None:
        print(f"No reference to write: {SOURCE} does not exist in this checkout.")
        return 0
    if not arguments:
        write(made)
        return 0
    found = problems()
    print("\n".join(found) or f"docs/reference is fresh ({len(made)} pages)")
    return 1 if found else 0
