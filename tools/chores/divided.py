"""Cut every arrow that may leave the process, stages in two processes, whole and killed (about a minute)."""

from __future__ import annotations

from tools.chores import test


def main(arguments: list[str]) -> int:
    return test.main(["-m", "long", "tests/journeys/test_divided_crawl.py", *arguments])
