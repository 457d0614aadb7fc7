"""Kill a runtime while crawlers are at it, and prove that home gets what a clean run brings: `kill-runtimes [--kills N]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.killing import runtimes


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev kill-runtimes", description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="how many (default 30: some two minutes)")
    parser.add_argument("--seed", type=int, default=1, help="the moments follow from it (default 1)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as folder:
        told = runtimes.run(given.kills, Path(folder), given.seed)
    print("\n".join(told.wrong[:20]), end="\n" if told.wrong else "")
    print(
        f"{told.kills} kills, {told.crawlers} crawlers in {told.batches} batches, {told.failed} calls broken off by kills, "
        f"{told.broken} by home: {'as a clean run, nothing twice' if told.holds else 'WRONG'}"
    )
    return 0 if told.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
