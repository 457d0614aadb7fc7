"""Compare a crawl's ledger, archive, log, tables and counters with each other: `verify DIR...` (exit status 0 or 5)."""

from __future__ import annotations

import sys
from pathlib import Path

from gossamer.values.errors import GossamerError
from tools.verifying import verify


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print("usage: ./gossamer dev verify DIR...", file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    worst = 0
    for name in arguments:
        try:
            told = verify(Path(name))
        except GossamerError as error:
            print(f"{name}: {error}")
            worst = 5
            continue
        for line in told.notes:
            print(f"{name}: note: {line}")
        for line in told.findings:
            print(f"{name}: {line}")
        verdict = "agrees with itself" if told.is_whole else "does not agree with itself"
        print(f"{name}: {verdict}: {told.rows} rows, {told.records} records, {told.lines} lines of the log")
        worst = worst if told.is_whole else 5
    return worst
