"""The catalog finds classes by name: those that ship, one's own, and those of other packages by entry points."""

import sys
from pathlib import Path
from typing import Any

import pytest

from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.errors import UnknownName, WiringError
from gossamer.engine.planning import Catalog
from gossamer.engine.transports import transport_of
from gossamer.engine.unit import Provider

MODULE = """
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.unit import Provider

class Keep(Consumer):
    inbox: In[int]
    def consume(self, item): pass

class Shelf(Provider):
    pass
"""


class Log(Consumer):
    """Ships."""

    inbox: In[int]

    def consume(self, item: int) -> None:
        pass


class Disk(Provider):
    """Ships."""


def install(folder: Path, package: str, points: str, source: str = MODULE) -> None:
    """A package as pip leaves it, without pip."""
    (folder / f"{package}.py").write_text(source, encoding="utf-8")
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


def test_names_lead_to_classes() -> None:
    catalog = Catalog({"log": Log}, {"disk": Disk})
    assert catalog.component("log") is Log
    assert catalog.provider("disk") is Disk
    catalog.add("mine", Log)
    catalog.add("shelf", Disk)
    assert catalog.component("mine") is Log
    assert catalog.provider("shelf") is Disk
    assert {"log", "mine"} <= set(catalog.names("components"))


def test_a_place_is_imported_when_its_name_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "placed.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    catalog = Catalog({"keep": "placed:Keep"}, {"shelf": "placed:Shelf"})
    assert "keep" in catalog.names("components") and "shelf" in catalog.names("providers")
    assert "placed" not in sys.modules
    assert catalog.component("keep") is catalog.component("keep") is sys.modules["placed"].Keep
    assert catalog.provider("shelf") is sys.modules["placed"].Shelf


def test_an_unknown_name_lists_the_known_ones() -> None:
    catalog = Catalog({"log": Log}, {"disk": Disk})
    with pytest.raises(UnknownName, match="unknown component 'lgo'; did you mean 'log'"):
        catalog.component("lgo")
    with pytest.raises(UnknownName, match=r"unknown provider 'log'; known: .*disk"):
        catalog.provider("log")


@pytest.mark.parametrize("thing", [int, 3, Log(), "log"])
def test_what_is_no_unit_cannot_be_registered(thing: Any) -> None:
    with pytest.raises(
        WiringError, match=r"'x': .* is neither a component nor a provider class; derive it from one of them"
    ):
        Catalog().add("x", thing)


def test_another_package_registers_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = "[gossamer.components]\nelsewhere-keep = elsewhere:Keep\n[gossamer.providers]\nelsewhere-shelf = elsewhere:Shelf\n"
    install(tmp_path, "elsewhere", points)
    monkeypatch.syspath_prepend(tmp_path)
    catalog = Catalog()
    assert catalog.component("elsewhere-keep").__name__ == "Keep"
    assert catalog.provider("elsewhere-shelf").__name__ == "Shelf"
    assert "elsewhere-keep" in catalog.names("components")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("broken:Nothing", "'broken-part' of package broken cannot be loaded: .*Nothing"),
        ("nowhere_at_all:Keep", "'broken-part' of package broken cannot be loaded: No module named 'nowhere_at_all'"),
        ("broken:Shelf", "'broken-part' of package broken is not a component class: broken:Shelf"),
    ],
)
def test_a_broken_entry_point_names_its_package(
    value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "broken", f"[gossamer.components]\nbroken-part = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnknownName, match=message):
        Catalog().component("broken-part")


def test_a_connector_of_a_package_that_cannot_be_imported_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "broken", "[gossamer.connectors]\nbroken-scheme = nowhere_at_all:TRANSPORT\n")
    monkeypatch.syspath_prepend(tmp_path)
    why = "connector scheme 'broken-scheme' of package broken cannot be loaded: No module named 'nowhere_at_all'"
    with pytest.raises(WiringError, match=why):
        transport_of("broken-scheme:there")


def test_two_packages_that_want_one_name_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("one", "two"):
        folder = tmp_path / package
        folder.mkdir()
        install(folder, package, f"[gossamer.components]\nboth = {package}:Keep\n")
        monkeypatch.syspath_prepend(folder)
    with pytest.raises(
        WiringError, match="component 'both' is registered by several packages: one, two; uninstall all but one"
    ):
        Catalog().component("both")
