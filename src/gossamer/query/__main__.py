"""`python -m gossamer.query DIRECTORY [--ended]`: what a crawl starts beside itself and at its end."""

import os
import sys
from pathlib import Path

from gossamer.query.convert import convert


def main(arguments: list[str]) -> int:
    """Convert; 0 where that is done, or somebody else is doing it."""
    ended = "--ended" in arguments
    if not ended:
        os.nice(10)  # beside a running crawl
    [directory] = [argument for argument in arguments if argument != "--ended"]
    convert(Path(directory), ended=ended)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
