"""Kill a crawl again and again, and prove that nothing was lost: `kill-loop [--kills N] [--seed S] [--concurrency C] [--json]`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

import msgspec

from tools.killing import loop


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev kill-loop", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many (default 50: some two minutes)")
    parser.add_argument("--seed", type=int, default=1, help="webs, moments and ways follow from it (default 1)")
    parser.add_argument("--concurrency", type=int, default=16, help="requests in flight (default 16)")
    parser.add_argument("--pages", type=int, default=4000, help="pages of a web (default 4000)")
    parser.add_argument("--folder", type=Path, help="where crawls and logs go, and stay; default: a temporary folder")
    parser.add_argument("--json", action="store_true", help="print one line of JSON, nothing else")
    given = parser.parse_args(arguments)

    def say(line: str) -> None:
        if not given.json:
            print(line, flush=True)

    # Who ends us must not leave a crawl behind: it lives in a session of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as temporary:
        folder = given.folder or Path(temporary)
        keep = given.folder is not None
        report = loop.run(given.kills, given.seed, given.concurrency, given.pages, folder, say, keep=keep)
    told = loop.breaches_of(report)
    if given.json:
        print(msgspec.json.encode({**report.figures(), "told": told}).decode())
    else:
        print("\n".join([*told, *(f"{name}: {value}" for name, value in report.figures().items())]))
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
