"""The directory of a crawl: judged before anything is touched, made, replaced, given up again.

Place in the flow: :mod:`crawl` asks here what may be done with the directory that the options name, and writes the wiring as run
into it: that file makes a directory a crawl.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from gossamer.assembly.options import CrawlOptions
from gossamer.flow.crashing import Point, crash_at
from gossamer.flow.graph import Graph
from gossamer.flow.sheet import properties
from gossamer.flow.wiring import Wiring, write
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.query.places import CRAWL_FILE, TRIPLES

#: What a run leaves alone in its directory that was killed before that was a crawl.
_UNFINISHED = f"{CRAWL_FILE}.new"

#: Marks a directory in which notes are written that have to be there before it is a crawl; and where they lie.
_BEGINNING = ".beginning"
_NOTES = ("state", TRIPLES)


class CrawlPlace:
    """One directory, and what the options allow to be done with it."""

    def __init__(self, path: Path, options: CrawlOptions) -> None:
        self.path = path
        self._options = options
        self._aside = path.with_name(f"{path.name}.replaced")
        self._going = path.with_name(f".{path.name}.removed")
        self.holds_another = False
        """The crawl that is being replaced stands aside."""

    def __repr__(self) -> str:
        return f"<CrawlPlace {self.path}>"

    def check(self) -> None:
        """Refuse what is no place for this crawl. Touches nothing.

        Raises:
            UsageError: it holds something else, or a crawl that is neither to be resumed nor replaced.
            CrawlDirectoryError: it holds a crawl that is to be replaced, and runs.
        """
        path = self.path
        if not path.exists() or self._options.resume:
            return
        if not path.is_dir():
            raise UsageError(f"{path} is a file; name a directory with -o")
        if (path / CRAWL_FILE).exists():
            if not self._options.overwrite:
                self._check_free()
                raise UsageError(
                    f"{path} holds a crawl; go on with it (gossamer resume {path}), name another directory with -o, "
                    "or replace it with --overwrite"
                )
            self._check_idle()
        elif any(entry.name not in self._own() for entry in path.iterdir()):
            raise UsageError(f"{path} is not empty and holds no crawl; name another directory with -o")

    def _own(self) -> tuple[str, ...]:
        """What may stand in a directory that is no crawl yet: runs that were killed left it."""
        return (_UNFINISHED, _BEGINNING, *_NOTES) if (self.path / _BEGINNING).exists() else (_UNFINISHED,)

    def make(self, wiring: Wiring, graph: Graph, note: Callable[[], None]) -> bool:
        """Make the directory and write what is about to run into it: True if it was not there before.

        A crawl that is replaced stands aside until the new one has begun.

        Args:
            wiring: what is about to run.
            graph: the same, planned.
            note: writes what a new crawl has to know beside its wiring; a kill leaves both or no crawl.

        Raises:
            UsageError: it cannot be written.
        """
        path = self.path
        shutil.rmtree(self._going, ignore_errors=True)  # of a run that was killed while it removed what came to nothing
        try:
            if self._options.overwrite and (path / CRAWL_FILE).exists():
                self._check_idle()  # once more: seeds were looked up meanwhile
                path.rename(self._aside)
                self.holds_another = True
            made = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
            if self._options.resume:
                (path / _BEGINNING).unlink(missing_ok=True)
            else:
                self._begin(wiring, graph, note, made)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}; name another directory with -o") from None
        return made

    def _begin(self, wiring: Wiring, graph: Graph, note: Callable[[], None], made: bool) -> None:
        mark = self.path / _BEGINNING
        mark.touch()
        for name in _NOTES:  # those of a run that was killed here say what that one was told
            shutil.rmtree(self.path / name, ignore_errors=True)
        (self.path / _NOTES[0]).mkdir()
        try:
            note()
        except UsageError:
            self.settle(made, has_begun=False)
            raise
        crash_at(Point.BEGINNING)
        self.write(wiring, graph)
        crash_at(Point.BEGINNING)
        mark.unlink()

    def _check_idle(self) -> None:
        if self._aside.exists():
            raise UsageError(
                f"{self._aside} is in the way: a run that was killed left it, or it is yours; move it, and try again"
            )
        self._check_free()

    def _check_free(self) -> None:
        from gossamer.assembly.control.client import holder  # few crawls find another in their place

        if process := holder(self.path):
            raise CrawlDirectoryError(f"{self.path} is in use by process {process}; stop that one first")

    def write(self, wiring: Wiring, graph: Graph) -> None:
        """Write the wiring that runs from now on; where it holds a password, for its owner alone.

        Raises:
            OSError: it cannot be written; what stood there stands there.
        """
        write(self.path / CRAWL_FILE, wiring, is_private=_holds_secrets(wiring, graph))

    @property
    def told_vain(self) -> str:
        """What becomes of the directory when nothing came, in words."""
        rest = f"{self.path} keeps what it held" if self.holds_another else f"{self.path} is removed"
        return f"nothing came, so nothing is kept: {rest}"

    def settle(self, made: bool, has_begun: bool) -> None:
        """A crawl that could not begin, or came to nothing, leaves no directory; the one that it was to replace comes back."""
        if made and not has_begun:
            # First out of the way, whole: a directory that is half removed would be neither a crawl nor free for one.
            self.path.rename(self._going)
            shutil.rmtree(self._going, ignore_errors=True)
            if self.holds_another:
                self._aside.rename(self.path)
        elif self.holds_another:
            shutil.rmtree(self._aside, ignore_errors=True)
        self.holds_another = False


def _holds_secrets(wiring: Wiring, graph: Graph) -> bool:
    """A setting that may hold a password was given."""
    units = (
        *((plan.settings, graph.components[name].sheet) for name, plan in wiring.components.items()),
        *((plan.settings, graph.providers[name].sheet) for name, plan in wiring.providers.items()),
    )
    return any(
        prop.secret and given.get(prop.name) for given, sheet in units if given for prop in properties(type(sheet))
    )
