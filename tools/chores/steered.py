"""Steer crawls of several agents at random moments, and prove that each ends as it should: `steered [--crawls N] [--seed S]`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tools.killing.steered import run


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev steered", description=__doc__)
    parser.add_argument("--crawls", type=int, default=20, help="how many (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="webs and acts follow from it (default 1)")
    parser.add_argument("--folder", type=Path, help="where everything goes, and stays; default: a temporary folder")
    given = parser.parse_args(arguments)
    # A chore that is ended must not leave a crawl behind, whose processes live in sessions of their own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="gossamer-steered-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = run(given.crawls, folder, given.seed, lambda line: print(line, flush=True))
    print("\n".join(report.breaches))
    acts = ", ".join(f"{times} {name}" for name, times in report.acts.most_common())
    print(f"{report.crawls} crawls in {report.seconds:.0f} s; acts: {acts}")
    for told, times in report.refused.most_common():
        print(f"refused {times} times: {told}")
    print(f"breaches: {len(report.breaches)}")
    return 1 if report.breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
