"""Kill a crawl and its triple stores again and again, and prove that they hold what the pages say: `kill-triples [--kills N]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.killing import triples


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev kill-triples", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many (default 50: some four minutes)")
    parser.add_argument("--seed", type=int, default=1, help="the moments follow from it (default 1)")
    parser.add_argument("--folder", type=Path, help="where what went wrong stays; default: a temporary folder")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as temporary:
        told = triples.run(given.kills, given.seed, given.folder or Path(temporary))
    print("\n".join(told.wrong), end="\n" if told.wrong else "")
    print(
        f"{told.kills} kills of crawls, {told.server_kills} of the store elsewhere, {told.rounds} rounds, {told.triples} triples: ",
        end="",
    )
    print("WRONG" if told.wrong else "all three hold what the pages say")
    return 1 if told.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
