"""`python -m gossamer.query DIRECTORY [--ended]`: what a crawl starts beside itself and at its end."""

import gc
import os
import sys
import traceback
from pathlib import Path

#: New containers until the collector looks for cycles: more than are there when all is imported, and rows are no cycles.
COLLECT_AFTER = 100_000


def main(arguments: list[str]) -> int:
    """Convert, and say on standard output what had to be made again; 0 where that is done, or somebody else is doing it."""
    gc.set_threshold(COLLECT_AFTER, 20, 20)
    from gossamer.query.convert import convert

    ended = "--ended" in arguments
    if not ended:
        os.nice(10)  # beside a running crawl
    [directory] = [argument for argument in arguments if argument != "--ended"]
    try:
        done = convert(Path(directory), ended=ended)
    except Exception as error:  # whoever has started this tells its last line to a person
        traceback.print_exc()
        sys.stderr.write(f"{type(error).__name__}: {' '.join(str(error).split())}\n")
        return 1
    if done.told:
        sys.stdout.write(f"{done.told}\n")
    if done.busy and ended:  # it waits for others, so it was the directory
        sys.stderr.write("the directory cannot be written\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
