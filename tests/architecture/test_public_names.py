"""Every public name can be loaded, and every contract's suite is one of them."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import gossamer
import gossamer.testing

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "gossamer"


@pytest.mark.parametrize("name", gossamer.__all__)
def test_a_public_name_of_the_package_loads(name: str) -> None:
    assert getattr(gossamer, name) is not None
    assert name in dir(gossamer)


@pytest.mark.parametrize("name", gossamer.testing.__all__)
def test_a_public_name_of_testing_loads(name: str) -> None:
    assert getattr(gossamer.testing, name) is not None


#: Contracts with protocols; others hold values and functions for other rooms.
SEAMS = sorted(
    str(path.relative_to(PACKAGE))
    for path in PACKAGE.rglob("contract.py")
    if "(Protocol" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("contract", SEAMS)
def test_a_contract_names_its_suites_and_they_are_public(contract: str) -> None:
    suites = re.findall(r"check_\w+", (PACKAGE / contract).read_text(encoding="utf-8"))
    assert suites, f"{contract} names no suite"
    assert set(suites) <= set(gossamer.testing.__all__)


def test_an_unknown_name_lists_the_public_ones() -> None:
    with pytest.raises(AttributeError, match="crawl_sync"):
        _ = gossamer.crawll


def test_a_class_name_means_one_thing_in_the_package() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
