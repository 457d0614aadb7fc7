"""How a process that is ours alone is set up: event loop, garbage collector, open files. Programs that call us keep theirs, but
for the collector while a crawl of theirs runs."""

import contextlib
import gc
import resource
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop  # every command imports this module, and few need a loop

#: New containers until the collector looks for cycles. The default (700; 2,000 from Python 3.13 on) looks thousands of times a
#: second while pages are parsed, and finds next to nothing, because what flows holds no cycles: about 10 % of a crawl's CPU
#: (measured over 1,700 documentation pages). 50,000 bounds what a cycle can hold back to some megabytes.
COLLECT_AFTER = 50_000

#: The same while a process starts: more than there are when a crawl begins (55,000), most of which stay.
COLLECT_AT_START_AFTER = 100_000


def loop_factory() -> "Callable[[], AbstractEventLoop] | None":
    """uvloop's, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def load_without_collecting() -> None:
    """Let the collector wait until all is imported: it would look 100 times at 500 modules, for 20 ms of CPU, and find nothing."""
    gc.set_threshold(COLLECT_AT_START_AFTER, 20, 20)


def tune_collector() -> None:
    """Let the collector look seldom, and never again at what was loaded at the start.

    What is garbage by then is kept, too (2 MB): to look for it takes as much CPU as ten pages.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 20)


class _Seldom:
    """How many crawls of a program have the collector look seldom, and what it had before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.crawls = 0
        self.before: tuple[int, int, int] | None = None


_seldom = _Seldom()


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """While a crawl of a program runs, let the collector look as seldom as in a process of ours; then as before.

    A program that has chosen to look more seldom still, or never, keeps that.
    """
    with _seldom.lock:
        _seldom.crawls += 1
        before = gc.get_threshold()
        if _seldom.crawls == 1 and 0 < before[0] < COLLECT_AFTER:
            _seldom.before = before
            gc.set_threshold(COLLECT_AFTER, 20, 20)
    try:
        yield
    finally:
        with _seldom.lock:
            _seldom.crawls -= 1
            if not _seldom.crawls and _seldom.before is not None:
                if gc.get_threshold()[0] == COLLECT_AFTER:  # unless the program has said otherwise meanwhile
                    gc.set_threshold(*_seldom.before)
                _seldom.before = None


#: Open files that a crawl asks for, where the system's hard limit allows them.
OPEN_FILES = 8_192


def allow_open_files() -> None:
    """Raise the limit of open files as far as we may: many systems begin with 256 or 1,024, and allow more to who asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
