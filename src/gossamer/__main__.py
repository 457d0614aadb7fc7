"""`python -m gossamer`, and the installed `gossamer` command: nothing but Gossamer and what it needs is found from here on."""

import gc
import sys

#: New containers until the collector looks for cycles while the process starts: more than there are when a crawl begins (55,000),
#: most of which stay. With Python's own figure it would look 100 times at 500 modules, for 30 ms of CPU, and find nothing.
COLLECT_AT_START_AFTER = 100_000


def command() -> int:
    """Run the command line; the exit status."""
    gc.set_threshold(COLLECT_AT_START_AFTER, 20, 20)
    _leave_folder()
    _take_interrupts()
    from gossamer.cli.main import main

    return main()


def _leave_folder() -> None:
    """Take off the import path what Python puts first: the current folder (`-m`) or the command's.

    The command imports nothing from there, and a `msgspec.py` among a person's downloads must not become ours. What
    stands in PYTHONPATH is meant, and stays. An archive of Python code (zipapp) is no folder, and stays as well.
    """
    import os

    if not sys.flags.safe_path and sys.path and os.path.isdir(sys.path[0] or "."):  # noqa: PTH112  # pathlib is not safe yet
        del sys.path[0]


def _take_interrupts() -> None:
    """Let Ctrl-C end the process at once while modules are loaded: nothing was made yet, and a traceback would tell nothing."""
    import os
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # one that is ignored stays ignored
        signal.signal(signal.SIGINT, lambda *_: os._exit(3))


if __name__ == "__main__":
    sys.exit(command())
