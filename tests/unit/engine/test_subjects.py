"""The one door: subjects that ship and those of installed packages, and the names of 0.2.0 that moved."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer._moved import MOVED
from gossamer.crawls.live import settings_of
from gossamer.crawls.options import CrawlOptions, all_options, merged_options, part_of
from gossamer.engine.errors import UnknownName, WiringError
from gossamer.engine.sheet import build, properties
from gossamer.engine.subjects import SHIPPED, Subject, found_at, installed, shipped, subjects
from gossamer.recrawl.options import RecrawlOptions
from gossamer.values.errors import UsageError

DECLARED = """
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.subjects import Command, Subject
from typing import Annotated

class TidesOptions(Sheet, frozen=True):
    tide: Annotated[str, setting("Crawl at this tide.")] = "any"

SUBJECT = Subject(name="tides", title="Tides", options="tides:TidesOptions", MORE)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, in front of Python's own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    merged_options.cache_clear()
    sys.modules.pop("tides", None)


def install(site: Path, more: str = "", subject: str = "tides:SUBJECT", option: str = "tide") -> None:
    info = site / "tides-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tides\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gossamer.subjects]\ntides = {subject}\n")
    (site / "tides.py").write_text(DECLARED.replace("MORE", more).replace("tide:", f"{option}:"))


def places() -> list[str]:
    """Everything that the shipped subjects name."""
    found = [place for one in shipped() for place in (one.options, one.wire) if place]
    for one in shipped():
        found += [command.place for command in one.commands.values()]
        found += [*one.components.values(), *one.providers.values(), *one.tables.values(), *one.pages.values()]
    return found


def test_every_subject_that_ships_is_named_after_its_package() -> None:
    assert [f"gossamer.{one.name}" for one in shipped()] == list(SHIPPED)


@pytest.mark.parametrize("place", places())
def test_whatever_a_subject_that_ships_names_is_there(place: str) -> None:
    assert found_at(place) is not None


def test_a_place_that_is_not_there_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match=r"gossamer\.engine:nothing cannot be loaded"):
        found_at("gossamer.engine:nothing")


@pytest.mark.usefixtures("site")
def test_without_packages_only_what_ships_is_there() -> None:
    assert installed() == ()
    assert subjects() == shipped()


def test_an_option_of_a_package_cannot_change_while_a_crawl_runs(site: Path) -> None:
    install(site)
    assert "tide" in all_options().__struct_fields__
    with pytest.raises(UsageError, match="option 'tide' cannot change while a crawl runs: it changes the graph"):
        settings_of("tide", "low", {})


def test_a_package_brings_options_that_stand_beside_ours(site: Path) -> None:
    install(site)
    assert [one.name for one in installed()] == ["tides"]
    options = build(all_options(), {"tide": "high", "depth": 2, "recrawl": "every=1d"})
    assert isinstance(options, CrawlOptions)
    assert options.depth == 2
    tides = found_at("tides:TidesOptions")
    assert part_of(options, tides).tide == "high"
    assert part_of(options, RecrawlOptions).recrawl == "every=1d"
    assert "tide" not in {prop.name for prop in properties(all_options(installed=False))}


def test_options_of_the_core_alone_have_the_defaults_of_each_subject() -> None:
    assert part_of(CrawlOptions(), RecrawlOptions) == RecrawlOptions()


def test_a_package_that_takes_the_name_of_another_subject_is_refused_by_both_names(site: Path) -> None:
    install(site, 'commands={"search": Command("tides:f", "Ask.", "Try")}')
    with pytest.raises(WiringError, match="package tides: command 'search' is taken by subject 'search'; rename it"):
        installed()


def test_an_option_that_the_core_has_is_refused(site: Path) -> None:
    install(site, option="depth")
    with pytest.raises(WiringError, match="subject 'tides': option 'depth' is taken by the core; rename it"):
        all_options()


@pytest.mark.parametrize("subject", ["tides:TidesOptions", "tides:NOTHING"])
def test_what_is_no_subject_is_refused_in_a_line(subject: str, site: Path) -> None:
    install(site, subject=subject)
    with pytest.raises(WiringError, match="subject 'tides' of package tides"):
        installed()


@pytest.mark.parametrize("old", MOVED)
def test_a_name_of_0_2_0_that_manuals_named_still_imports_and_warns(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now {MOVED[old]}"):
        found = importlib.import_module(old)
    there = importlib.import_module(MOVED[old])
    public = [name for name, value in vars(there).items() if getattr(value, "__module__", "") == there.__name__]
    assert public and all(getattr(found, name) is getattr(there, name) for name in public)
    for name in [name for name in sys.modules if name == old]:
        del sys.modules[name]


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("gossamer.flow.nothing")


def test_a_subject_says_what_it_is() -> None:
    assert "name='tides'" in repr(Subject(name="tides", title="Tides"))
