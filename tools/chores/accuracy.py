"""Crawl sites whose every page is known, the largest with 3,906 and a hundred at random (about half a minute)."""

from __future__ import annotations

from tools.chores import test


def main(arguments: list[str]) -> int:
    return test.main(["-m", "long", "tests/journeys/test_accuracy.py", *arguments])
