"""`logs/notes.jsonl`: the lines that a crawl at work tells people, one a line, with their time.

Place in the flow: whoever runs a crawl tells a line to its terminal and notes it here, so that it is there for whoever looks later
(`gossamer log`). A note is a courtesy: if it cannot be written, the crawl goes on.
"""

import contextlib
from pathlib import Path

import msgspec

from gossamer.flow.clock import SystemClock
from gossamer.model.dates import utc_text
from gossamer.stores.printable import printable

#: Where it lies, inside the crawl directory.
NOTES_LOG = "logs/notes.jsonl"


def note_line(directory: Path, line: str) -> None:
    """Add a line that the crawl has told."""
    entry = {"event": "note", "at": utc_text(SystemClock().now()), "text": line}
    path = directory / NOTES_LOG
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as log:
            log.write(printable(msgspec.json.encode(entry)) + b"\n")
