"""The lines that a run tells people: to its terminal as they come, and into its log while it is at work.

Place in the flow: a crawl, of one agent or of several, tells everything through one object of this. The command line says the
latest lines once more at the end, when the panel that covered them is gone.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path

from gossamer.stores.notes import note_line

#: Lines that are said once more at the end of a crawl: the latest.
WARNINGS = 10


class RunLines:
    """What one run has told."""

    def __init__(self, directory: Path, report: Callable[[str], None], is_working: Callable[[], bool]) -> None:
        """Nothing is told yet.

        Args:
            directory: of the crawl.
            report: takes each line.
            is_working: whether units are up now.
        """
        self._directory = directory
        self._report = report
        self._is_working = is_working
        self.warnings: deque[str] = deque(maxlen=WARNINGS)
        """The lines that were told while the crawl was at work; they are said once more at the end."""

    def __repr__(self) -> str:
        return f"<RunLines {len(self.warnings)} to be said once more>"

    def tell(self, line: str) -> None:
        """Tell a line; one of while the crawl was at work is noted, and said once more at the end."""
        if self._is_working():
            self.warnings.append(line)
            note_line(self._directory, line)
        self._report(line)
