"""Ask the property tests for new cases, 5,000 each, where the suite asks for the same ones each time (some minutes)."""

from __future__ import annotations

from tools.chores import test


def main(arguments: list[str]) -> int:
    return test.main(["--hypothesis-profile=long", "tests/properties", *arguments])
