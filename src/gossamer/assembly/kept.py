"""The wiring that the directory of a crawl keeps: what a crawl goes on with, and what is asked of a crawl at rest.

Place in the flow: :mod:`crawl_plan` goes by it where a crawl is resumed, and commands read settings in it. It stands
apart from :mod:`place`, which writes it, so that a command that only looks imports little.
"""

from pathlib import Path

from gossamer.assembly.olden import completed
from gossamer.flow.errors import BrokenWiring
from gossamer.flow.wiring import Wiring, read
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.query.places import CRAWL_FILE, crawl_directory


def kept_wiring(output: str) -> Wiring:
    """The wiring that the crawl of a directory ran with last.

    Raises:
        UsageError: no directory is named, or it holds no crawl.
        CrawlDirectoryError: its wiring is missing or damaged.
        WiringError: its wiring says what cannot be.
    """
    if not output:
        raise UsageError("--resume needs the directory of the crawl; name it with -o")
    return completed(read_wiring(crawl_directory(output)))


def read_wiring(directory: Path) -> Wiring:
    """The wiring that a crawl directory keeps, as it stands there.

    Raises:
        CrawlDirectoryError: it is missing, empty or cut.
        WiringError: it says what cannot be.
    """
    path = directory / CRAWL_FILE
    try:
        if not path.stat().st_size:
            raise BrokenWiring(f"{path} is empty")
        return read(path)
    except BrokenWiring as error:
        raise CrawlDirectoryError(f"{error}; bring it back from a copy") from None
    except OSError as error:
        raise CrawlDirectoryError(f"{path} cannot be read: {error.strerror}; bring it back from a copy") from None
