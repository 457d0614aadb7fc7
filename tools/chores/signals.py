"""Signal crawls at random moments, close their readers, and prove that each ends well: `signals [--times N] [--seed S]`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

import msgspec

from tools import signalling


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev signals", description=__doc__)
    parser.add_argument(
        "--times", type=int, default=200, help="how many runs are disturbed (default 200: a quarter of an hour)"
    )
    parser.add_argument("--seed", type=int, default=1, help="moments and ways follow from it (default 1)")
    parser.add_argument("--folder", type=Path, help="where crawls go, and stay; default: a temporary folder")
    parser.add_argument("--json", action="store_true", help="print one line of JSON, nothing else")
    given = parser.parse_args(arguments)

    def say(line: str) -> None:
        if not given.json:
            print(line, flush=True)

    # Who ends us must not leave a crawl behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="gossamer-signals-") as temporary:
        report = signalling.run(given.times, given.seed, given.folder or Path(temporary), say)
    if given.json:
        print(msgspec.json.encode(report).decode())
    else:
        figures = {**msgspec.to_builtins(report), "findings": len(report.findings)}
        print("\n".join(f"{name}: {value}" for name, value in figures.items()))
    return 1 if report.findings else 0
