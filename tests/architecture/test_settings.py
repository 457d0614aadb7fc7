"""Every setting has an effect: its unit, or whoever knows the sheet, reads it."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import gossamer
from gossamer.engine.sheet import Sheet, properties
from tools import ROOT

SOURCE = ROOT / "src" / "gossamer"

#: Sheets whose fields are read by their names, all at once.
READ_WHOLE = {
    "ExpressionSheet": "a setting for each gate; tests/unit/expressions/test_filter_language.py",
    "HostOptions": "crawls/identity.py goes through all of them",
    "RecrawlOptions": "recrawl/changes.py; tests/journeys/test_recrawl.py",
    "MobileOptions": "mobile/options.py; tests/journeys/test_crawl_mobile.py",
    **dict.fromkeys(
        ("BasicOptions", "CrawlOptions"),
        "crawls/compiling.py goes through all of them; tests/unit/crawls/test_compiling.py shows each",
    ),
}


def sheets() -> list[type[Sheet]]:
    """Every sheet of the package."""
    for module in pkgutil.walk_packages(gossamer.__path__, "gossamer."):
        if not module.name.endswith("__main__") and not module.name.startswith("gossamer.bench"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as missing:  # a library of an extra; sheets lie where none is needed
                if str(missing.name).startswith("gossamer"):
                    raise
    found, left = [], [Sheet]
    while left:
        heirs = left.pop().__subclasses__()
        left += heirs
        found += [one for one in heirs if one.__module__.startswith("gossamer.")]
    return found


def read_in(text: str) -> set[str]:
    """The names that a file reads as attributes: a class that declares a field does not read it."""
    return {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def test_every_setting_is_read_by_somebody_who_knows_its_sheet() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    names = {path: read_in(text) for path, text in texts.items()}
    words = {path: set(re.findall(r"\w+", text)) for path, text in texts.items()}
    dead = []
    for sheet in sheets():
        if sheet.__name__ in READ_WHOLE:
            continue
        kin = {one.__name__ for one in (sheet, *sheet.__subclasses__(), *sheet.__mro__) if one is not Sheet}
        home = Path(importlib.import_module(sheet.__module__).__file__ or "").parent
        known = [path for path in texts if path.parent == home or kin & words[path]]
        read = set().union(*(names[path] for path in known))
        dead += [f"{sheet.__module__}.{sheet.__name__}.{name}" for name in sheet.__struct_fields__ if name not in read]
    assert dead == []


def set_in(text: str) -> set[str]:
    """The names that a file gives values: as arguments, as keys of tables, and as `name = ...` within texts."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg)
        elif isinstance(node, ast.Dict):
            names |= {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= set(re.findall(r"\b([a-z][a-z0-9_]*)\s*=", node.value))
    return names


def test_every_setting_of_a_component_is_set_by_a_test() -> None:
    places = [*(ROOT / "tests").rglob("*.py"), *(SOURCE / "testing").rglob("*.py")]
    told = set().union(*(set_in(path.read_text(encoding="utf-8")) for path in places))
    never = {
        f"{sheet.__name__}.{one.name}"
        for sheet in sheets()
        if sheet.__name__ not in READ_WHOLE
        for one in properties(sheet)
        if one.name not in told
    }
    assert never == set(), "a new setting needs a test that sets it and sees what it does"
