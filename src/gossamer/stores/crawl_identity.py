"""The identity of a crawl: a name made when its directory is, kept through resume and checkpoints, and known to every process.

Place in the flow: whoever makes or resumes a crawl calls :func:`ensure_crawl_id`; who brings rows of several crawls together reads
:func:`crawl_id`. It is a file of its own: the ledger is open to one process only, and goes back to what it was at a checkpoint;
`crawl.toml` is a wiring, which others may repeat.
"""

from pathlib import Path

from gossamer.model.identity import unique_name
from gossamer.stores.replacing import replace_file

#: Where the id stands, inside the crawl directory.
CRAWL_ID = "state/crawl-id"


def ensure_crawl_id(directory: Path, now: float) -> str:
    """The id of the crawl in a directory, made now where it has none.

    Args:
        directory: the crawl directory.
        now: seconds since the epoch.

    Raises:
        OSError: it cannot be written.
    """
    known = crawl_id(directory)
    if known:
        return known
    path = directory / CRAWL_ID
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, f"{unique_name(now)}\n".encode())
    return crawl_id(directory)


def crawl_id(directory: Path) -> str:
    """The id of the crawl in a directory; empty where an older program made it and none has resumed it."""
    try:
        return (directory / CRAWL_ID).read_text().strip()
    except FileNotFoundError:
        return ""
