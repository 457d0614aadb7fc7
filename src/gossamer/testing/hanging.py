"""How long a test waits for something before it calls it hung.

Place in the flow: below every test that waits for a process, a socket, a thread or an event. Such a bound ends a hang and
is no promise about speed, so all tests share the one, and a loaded machine never reaches it.
"""

from __future__ import annotations

from typing import Final

HUNG_AFTER: Final = 180.0
"""Seconds: enough for any single crawl of the suite on a machine that is busy with other work."""
