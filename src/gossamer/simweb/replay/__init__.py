"""Stored records served as a web: any WARC or ARC file becomes something to crawl, without a network (row C11).

Place in the flow: `index` notes once where each record lies, `records` brings one back as the answer that it was, `server` puts
them on the loopback network. Nothing here knows how the files were made.
"""

from gossamer.simweb.replay.index import ReplayError, ReplayIndex
from gossamer.simweb.replay.server import Replay

__all__ = ["Replay", "ReplayError", "ReplayIndex"]
