"""Kill a crawl that sends crawlers, its runtime, and the line between them, and prove that nothing is lost: `kill-mobile [--kills
N]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.killing import mobile


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev kill-mobile", description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="how many (default 30: some five minutes)")
    parser.add_argument("--seed", type=int, default=1, help="the moments follow from it (default 1)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as folder:
        told = mobile.run(given.kills, Path(folder), given.seed)
    print("\n".join(told.wrong[:20]), end="\n" if told.wrong else "")
    print(f"{told.kills} kills, {told.of_runtime} of the runtime, {told.of_line} of the line, ", end="")
    print(
        f"{told.crawls} crawls, {told.documents} documents: {'nothing lost, nothing twice' if told.holds else 'WRONG'}"
    )
    return 0 if told.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
