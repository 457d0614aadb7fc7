"""Write docs/reference/ and other generated files; --check only says if they are fresh, --site FOLDER builds the site."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Protocol

from tools import decisions, keywords, site
from tools.checkout import REFERENCE, ROOT

SOURCE = "gossamer.cli.reference"


class Written(Protocol):
    """A module of the chores that knows a file and what belongs into it."""

    FILE: Path

    def text(self) -> str: ...


#: Single files that are written out of others.
FILES: tuple[Written, ...] = (keywords, decisions)


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
    found += [file.relative_to(ROOT).as_posix() for file in stale_files()]
    return [f"{name} is stale; run ./gossamer dev docs" for name in found]


def stale_files() -> dict[Path, str]:
    """The single files that do not say what they are made from says, and what they should say."""
    wanted = {one.FILE: one.text() for one in FILES}
    return {file: text for file, text in wanted.items() if not file.exists() or file.read_text("utf-8") != text}


def write(made: dict[str, str]) -> None:
    for file, text in stale_files().items():
        file.write_text(text, encoding="utf-8")
        print(f"wrote {file.relative_to(ROOT)}")
    for name in stale(made):
        path = REFERENCE / name
        if name in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[name], encoding="utf-8")
        else:
            path.unlink()
        print(f"{'wrote' if name in made else 'removed'} {path.relative_to(ROOT)}")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--site"] and len(arguments) == 2:
        return site.build(Path(arguments[1]))
    if arguments not in ([], ["--check"]):
        print("usage: ./gossamer dev docs [--check | --site FOLDER]", file=sys.stderr)
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
