"""Further processes: one place starts those of ours, so that one place says what they import."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: The one place.
STARTER = ROOT / "src" / "gossamer" / "engine" / "processes.py"

#: What starts a Python without saying what it imports: `multiprocessing` does it by `-c`, with the current folder first.
LOOSE = re.compile(r"(?<![\w\"])multiprocessing|ProcessPoolExecutor|(executable|python\")\)?, \"-[mc]\"")


@pytest.mark.parametrize("tree", ["src", "tools", "examples"])
def test_no_python_is_started_with_the_current_folder_first(tree: str) -> None:
    files = [path for path in (ROOT / tree).rglob("*.py") if path != STARTER]
    loose = [
        f"{path.relative_to(ROOT)}: {found[0]}" for path in files for found in LOOSE.finditer(path.read_text("utf-8"))
    ]
    assert loose == []


def test_an_event_loop_starts_children_in_one_place() -> None:
    """There each gets a session of its own, so that Ctrl-C in the terminal reaches the process that ends the others."""
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if "create_subprocess" in path.read_text("utf-8")
    }
    assert found == {"src/gossamer/engine/processes.py"}
