"""Kill a crawl that comes back to its pages, and prove that none comes too soon and none is forgotten: `kill-recrawl [--kills
N]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.killing import recrawls


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev kill-recrawl", description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="how many (default 30: some three minutes)")
    parser.add_argument("--seed", type=int, default=1, help="the moments follow from it (default 1)")
    parser.add_argument("--recrawl", default=f"adaptive={recrawls.MEAN}s", help="the policy (default adaptive=5s)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as folder:
        told = recrawls.run(given.kills, Path(folder), given.seed, given.recrawl)
    print("\n".join(told.wrong[:20]), end="\n" if told.wrong else "")
    print(f"{told.kills} kills, {told.requests} requests, {told.again} pages again after a kill: ", end="")
    print("no page too soon, none forgotten" if told.holds else "WRONG")
    return 0 if told.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
