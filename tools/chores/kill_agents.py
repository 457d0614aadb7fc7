"""Kill agents, masters and supervisors of one crawl, and prove that nothing was lost: `kill-agents [--kills N] [--masters M]`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

import msgspec

from tools.killing.agents import run
from tools.killing.site import Round


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gossamer dev kill-agents", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of agents (default 20)")
    parser.add_argument("--supervisors", type=int, default=5, help="of supervisors (default 5)")
    parser.add_argument("--agents", type=int, default=2, help="how many agents crawl (default 2)")
    parser.add_argument("--masters", type=int, default=0, help="how many divide the crawl (default 0: the ring does)")
    parser.add_argument("--master-kills", type=int, default=0, help="of masters (default 0)")
    parser.add_argument("--seed", type=int, default=1, help="web and moments follow from it (default 1)")
    parser.add_argument("--concurrency", type=int, default=32, help="requests in flight of all agents (default 32)")
    parser.add_argument("--pages", type=int, default=5000, help="pages of the web (default 5000)")
    parser.add_argument(
        "--delay", type=float, default=0.25, help="seconds between two requests to a host (default 0.25)"
    )
    parser.add_argument("--folder", type=Path, help="where crawl and log go, and stay; default: a temporary folder")
    parser.add_argument("--json", action="store_true", help="print one line of JSON, nothing else")
    given = parser.parse_args(arguments)
    # Who ends us must not leave a crawl behind: its processes live in sessions of their own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        round_ = Round(given.seed, given.pages, given.delay, None, given.concurrency)
        report = run(
            round_, given.agents, (given.kills, given.supervisors), folder, (given.masters, given.master_kills)
        )
    told = [f"{name}: {text}" for name, texts in report.judgement.breaches.items() for text in texts]
    if given.json:
        print(msgspec.json.encode({**report.figures(), "told": told}).decode())
    else:
        print("\n".join([*told, *(f"{name}: {value}" for name, value in report.figures().items())]))
    return 0 if report.judgement.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
