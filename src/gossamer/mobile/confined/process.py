"""The process of one crawler: shuts itself in, then runs the crawler over the pages that come through its pipe.

Place in the flow: :mod:`gossamer.mobile.confined.keeper` starts it with one end of a socket pair as its standard input, and nothing
else. :mod:`gossamer.mobile.confined.rehearsal` has it import everything before the walls stand, since afterwards nothing can be.
"""

import gc
import hashlib
import os
import socket
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec

import msgspec

from gossamer.engine.confinement import confine
from gossamer.engine.worker import Frames
from gossamer.mobile.checking import CrawlerRefused
from gossamer.mobile.confined.keeper import (
    ConfinedSetup,
    FromProcess,
    GaveUp,
    GivenPage,
    MadeBatch,
    WallsStand,
    WantedPage,
    frames_of,
)
from gossamer.mobile.confined.rehearsal import import_everything
from gossamer.mobile.crawler import CrawlerBatch, MobileCrawler
from gossamer.mobile.judging import Installed, allowed_processors
from gossamer.mobile.running import run_crawler
from gossamer.mobile.wire import BytesRefused, frame_of, from_bytes
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

#: Bytes of a message from the runtime, which is trusted.
_LONGEST = 1 << 31

Put = Callable[[FromProcess], None]

#: Late modules that are told of.
_MOST_LATE = 20

#: A machine that has no files cannot say what a traceback's lines are.
_MOST_TOLD = 500


def main() -> int:
    """Run the crawler that the first message brings; the status says nothing that the messages did not."""
    pipe = socket.socket(fileno=0)
    with pipe, frames_of(pipe, _LONGEST) as frames:
        setup = msgspec.msgpack.decode(frames.take(), type=ConfinedSetup)

        def put(message: FromProcess) -> None:
            frames.put(msgspec.msgpack.encode(message))

        try:
            import_everything()
            installed = allowed_processors(setup.processors)
        except UsageError as error:
            put(GaveUp("processors", str(error)[:_MOST_TOLD]))
            return 1
        except Exception as error:
            put(GaveUp("crashed", f"{type(error).__name__}: {error}"[:_MOST_TOLD]))
            return 1
        late = _LateImports()
        # What a page wants later must fail in the same way whether the walls have a gap or not.
        sys.meta_path.insert(0, late)
        walls = confine(setup.memory, setup.seconds, setup.layers)
        gc.freeze()  # modules and lists stay: to look through them again and again costs a page a tenth of its time
        put(WallsStand(walls))
        if setup.crawler:
            _run(put, frames, setup, installed, late)
    return 0


def _run(put: Put, frames: Frames, setup: ConfinedSetup, installed: Installed, late: "_LateImports") -> None:
    try:
        for batch in _batches(put, frames, from_bytes(setup.crawler), installed, setup.cuts):
            digest = hashlib.sha256(msgspec.msgpack.encode(batch)).digest()
            put(MadeBatch(frame_of(batch), digest, batch.summary is not None, tuple(late.names[:_MOST_LATE])))
    except MemoryError:
        put(GaveUp("memory", "it takes more memory than a crawler may have"))
    except (BytesRefused, CrawlerRefused) as error:
        put(GaveUp("invalid", str(error)[:_MOST_TOLD]))
    except UsageError as error:
        put(GaveUp("processors", str(error)[:_MOST_TOLD]))
    except (EOFError, OSError):
        return  # the other end is gone
    except Exception as error:
        put(GaveUp("crashed", f"{type(error).__name__}: {error}"[:_MOST_TOLD]))


def _batches(
    put: Put, frames: Frames, crawler: MobileCrawler, installed: Installed, cuts: tuple[int, ...]
) -> Iterator[CrawlerBatch]:
    decoder = msgspec.msgpack.Decoder(GivenPage)

    def fetch(task: Task) -> Response:
        put(WantedPage(task.url, task.depth, task.source, task.relation[:1_000]))
        page = decoder.decode(frames.take())
        return Response(
            Outcome(page.outcome), page.status, headers=page.headers, body=page.body, cut=page.cut, error=page.error
        )

    return run_crawler(crawler, fetch, installed, cuts=cuts)


class _LateImports:
    """Finds no module, and notes which were wanted. See `importlib.abc.MetaPathFinder`."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        if len(self.names) < _MOST_LATE:
            self.names.append(name)
        raise ModuleNotFoundError(f"{name} was not imported before the walls stood", name=name)


if __name__ == "__main__":
    status = main()
    # Nothing here is worth the work of a proper end, and the walls forbid some of it.
    os._exit(status)
