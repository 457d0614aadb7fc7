"""Stored records served as a web: any WARC or ARC file becomes something to crawl, without a network (row C11).

Place in the flow: :mod:`gossamer.stores.recorded` knows where each record lies, `server` puts them on the loopback network.
Nothing here knows how the files were made.
"""

from gossamer.simweb.replay.server import Replay
from gossamer.stores.recorded.index import ReplayError, ReplayIndex

__all__ = ["Replay", "ReplayError", "ReplayIndex"]
