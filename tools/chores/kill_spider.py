"""Kill a spider with forms again and again, and prove that its items are those of a clean run: `kill-spider [--kills N]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.killing import spiders


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev kill-spider", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many (default 50: some two minutes)")
    parser.add_argument("--seed", type=int, default=1, help="the moments follow from it (default 1)")
    parser.add_argument("--sessions", type=int, default=0, help="sessions that take turns (default: one alone)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as folder:
        told = spiders.run(given.kills, Path(folder), given.seed, sessions=given.sessions)
    print("\n".join(told.wrong[:20]), end="\n" if told.wrong else "")
    print(f"{told.kills} kills, {told.log_ins} log-ins, {told.items} items, {told.interrupted} interrupted: ", end="")
    print("as a clean run" if told.holds else "WRONG")
    return 0 if told.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
