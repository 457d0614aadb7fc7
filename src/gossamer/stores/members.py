"""Which agents a crawl has: a file beside their states, there from the first agent's start on. A crawl of one agent has none.

Place in the flow: the supervisor writes it before it starts an agent. Who brings files back after a kill, and who goes on with
a crawl, reads it: where several agents write, each has a log of its own, and the crawl's is made of theirs.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from gossamer.model.agents import member
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.stores.replacing import replace_file

#: Where the names of the agents stand, inside the crawl directory.
AGENTS = "state/agents.json"


def members_of(directory: Path) -> tuple[str, ...]:
    """The agents of a crawl, as :func:`gossamer.model.agents.member` reads them; none of a crawl of one agent.

    Raises:
        CrawlDirectoryError: the file is damaged.
    """
    path = directory / AGENTS
    try:
        names = msgspec.json.decode(path.read_bytes(), type=tuple[str, ...])
        for name in names:
            member(name)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (msgspec.DecodeError, UsageError) as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; bring it back from a copy") from None
    return names


def write_members(directory: Path, members: Sequence[str]) -> None:
    """Note the agents of a crawl: whole, or not at all.

    Raises:
        OSError: they cannot be written.
    """
    path = directory / AGENTS
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(list(members)))


def refuse_divided(directory: Path) -> None:
    """Refuse to go on with one agent where several have divided the crawl.

    Raises:
        UsageError: that is so.
        CrawlDirectoryError: the names of the agents cannot be read.
    """
    if found := members_of(directory):
        raise UsageError(
            f"the crawl in {directory} is divided among {len(found)} agents; go on with it on the command line: "
            f"gossamer resume {directory}"
        )
