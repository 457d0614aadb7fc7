"""Fakes and conformance suites, public: what a test of a crawl, or of a part of one's own, needs.

No product code imports this package.
"""

from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakeWeb, Page, Request
from gossamer.testing.fetching import Case, check_protocol_module, check_resolver

__all__ = ["Case", "FakeClock", "FakeWeb", "Page", "Request", "check_protocol_module", "check_resolver"]
