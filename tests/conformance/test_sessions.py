"""Sessions of a spider keep the promises of their contract."""

from gossamer.spiders.sessions import SessionPool, Sessions
from gossamer.testing import check_sessions


def test_the_sessions_of_a_spider_keep_their_promises() -> None:
    check_sessions(lambda: SessionPool(Sessions(3, limit=5), lambda: 1000.0), blocked=403, limit=5)
