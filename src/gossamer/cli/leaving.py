"""Signals before and after a crawl is at work: the process ends at once, with a status that is documented and without a traceback.

Place in the flow: :mod:`gossamer.__main__` takes Ctrl-C while modules are loaded, and each command is called
:func:`interruptible`. `crawl` and `resume` enter :class:`Leaving` before they import the crawler; while the crawl is at work its
event loop has the signals (:mod:`gossamer.cli.crawl`). Before that nothing was made, and after it everything is kept, so there is
nothing to finish, and nothing waits for an output that nobody reads.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

#: Signals that stop a crawl gracefully. One that is ignored from the start stays ignored, as `nohup` wants SIGHUP.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: Exit status of a crawl that a person stops.
STOPPED = 3

#: Whether this process is one command's alone: then how it takes signals holds until the interpreter is gone.
_process = {"is_own": False}


def own_process() -> None:
    """This process is one command's alone."""
    _process["is_own"] = True


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` while a command is at work, as commands and their libraries expect it.

    Before and after, it does what it was found to do. A command that has taken the signal for good (:class:`Leaving`) keeps it.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


class Leaving:
    """What a signal does while no crawl is at work: end the process with :attr:`status`."""

    def __init__(self) -> None:
        self.status = STOPPED
        self.handled = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.getsignal(number) for number in self.handled}

    def __repr__(self) -> str:
        return f"<Leaving with {self.status}>"

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not _process["is_own"]:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def take(self) -> None:
        """Take the signals: at the beginning, and when the event loop has given them back."""
        for number in self.handled:
            signal.signal(number, self._leave)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        os._exit(self.status)
