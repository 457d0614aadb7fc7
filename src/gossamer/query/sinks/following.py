"""What feeds a sink beside a crawl: each table of the sink by itself, all in one process (`gossamer.operations.following`)."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gossamer.query.places import SINKS_FILE
from gossamer.query.retrying import Retried, RetryingFollower
from gossamer.query.schema import tables_of
from gossamer.query.sinks.mapping import read_sinks
from gossamer.query.sinks.sink import DatabaseSink
from gossamer.query.sinks.webhook import WebhookSink
from gossamer.stores.crawl_identity import crawl_id


def sink_follower(directory: Path, name: str, sleep: Callable[[float], None] = time.sleep) -> RetryingFollower:
    """The follower of one sink of a crawl.

    Args:
        directory: the crawl directory.
        name: of the sink.
        sleep: waits for so many seconds.

    Raises:
        UsageError: the file of the sinks cannot be read.
    """
    spec, crawl = read_sinks(directory / SINKS_FILE, tables_of(directory)).sinks[name], crawl_id(directory)
    kind = WebhookSink if spec.is_webhook else DatabaseSink
    every = [
        Retried(f"sink {name}, {to.source}", partial(kind, directory, crawl, name, spec, at))
        for at, to in enumerate(spec.tables)
    ]
    return RetryingFollower(directory, every, sleep)
