"""`python -m gossamer.dashboard DIR ADDRESS`: the dashboard of one crawl, which ends with its standard input.

Place in the flow: `gossamer crawl --dashboard` starts it. The first line on standard output is the address, or after a `!`
the reason for which there is none.
"""

import sys
from pathlib import Path

from gossamer.values.errors import GossamerError


def _main(directory: str, address: str) -> int:
    from gossamer.dashboard.serving import read_address, serve

    try:
        serve([Path(directory)], read_address(address), lambda full, read: print(full, flush=True), is_child=True)
    except GossamerError as error:
        print(f"!{error}", flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:3]))
