"""Tests change nothing of ours behind its back: what a test needs to change is a parameter, a setting or a seam."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import ROOT

_OURS = {"gossamer", "tools", "tests"}


def _imported(tree: ast.Module) -> set[str]:
    """The names under which a file knows modules of others."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(one.asname or one.name).partition(".")[0] for one in node.names if one.name not in _OURS}
    return found - _OURS


def patches_of_ours(text: str) -> Iterator[int]:
    """Lines that replace an attribute of anything but an imported module of the standard library or another project."""
    tree = ast.parse(text)
    others = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unittest.mock"):
            yield node.lineno
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in ("setattr", "delattr") or not node.args:
            continue
        target = node.args[0]
        if isinstance(target, ast.Constant):
            is_other = str(target.value).partition(".")[0] not in _OURS
        else:
            while isinstance(target, ast.Attribute):
                target = target.value
            is_other = isinstance(target, ast.Name) and target.id in others
        if not is_other:
            yield node.lineno


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import os\nmonkeypatch.setattr(os, 'fsync', f)", []),
        ("import pathlib\nmonkeypatch.setattr(pathlib.Path, 'replace', f)", []),
        ("monkeypatch.setattr('sys.stdin', f)", []),
        ("from gossamer.storage import cdxj\nmonkeypatch.setattr(cdxj, 'FAN_IN', 4)", [2]),
        ("import gossamer.api\nmonkeypatch.setattr(gossamer.api, 'x', 4)", [2]),
        ("monkeypatch.setattr('gossamer.api.x', 4)", [1]),
        ("monkeypatch.delattr(maker, '_run')", [1]),
        ("from unittest.mock import patch", [1]),
    ],
)
def test_what_replaces_our_own_code_is_told_from_what_does_not(text: str, lines: list[int]) -> None:
    assert list(patches_of_ours(text)) == lines


def test_no_test_replaces_our_own_code() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in Path(ROOT / "tests").rglob("*.py")
        for line in patches_of_ours(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_commands_are_invoked_through_the_program() -> None:
    """Click keeps a command's option of help as it was asked for first: one without `-h` would be met by tests after it."""
    invoked = {
        (name, str(path.relative_to(ROOT)))
        for path in Path(ROOT / "tests").rglob("*.py")
        for name in re.findall(r"CliRunner\(\)\.invoke\(\s*(\w+)", path.read_text(encoding="utf-8"))
    }
    assert {name for name, _ in invoked} <= {"commands", "program"}, sorted(invoked)
    assert invoked
