"""Take masters and agents away for good, one from each crawl, and prove that nothing was lost: `lose-masters [--masters N]`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

import msgspec

from tools.killing.losing import run
from tools.killing.site import Round


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev lose-masters", description=__doc__)
    parser.add_argument("--masters", type=int, default=10, help="crawls that lose one of two masters (default 10)")
    parser.add_argument("--agents", type=int, default=10, help="crawls that lose one of two agents (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="webs and moments follow from it (default 1)")
    parser.add_argument("--pages", type=int, default=1000, help="pages of each web (default 1000)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON, nothing else")
    given = parser.parse_args(arguments)
    # Who ends us must not leave a crawl behind: its processes live in sessions of their own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    holds = True
    for what, times in (("master", given.masters), ("agent", given.agents)):
        with tempfile.TemporaryDirectory(prefix="gossamer-lose-") as temporary:
            report = run(Round(given.seed, given.pages, 0.25, None, 32), what, times, Path(temporary))
        holds = holds and report.judgement.holds
        told = [f"{name}: {text}" for name, texts in report.judgement.breaches.items() for text in texts]
        if given.json:
            print(msgspec.json.encode({"what": what, **report.figures(), "told": told}).decode())
        else:
            print(
                "\n".join([*told, f"lost: {what}", *(f"{name}: {value}" for name, value in report.figures().items())])
            )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
