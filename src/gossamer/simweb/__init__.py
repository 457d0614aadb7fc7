"""A simulated web that any crawler can be run against, and an auditor that judges the crawl.

Place in the flow: `SimWeb(spec)` is the web as a function (:mod:`site`). `serve` puts it on the loopback network for a test, `run`
does so for the command line, and `beside` in a process of its own. :mod:`audit` reads a server's log and reports how the crawler
did; :mod:`hostile` has servers that mean harm. See docs/simweb.md.

Open first: :mod:`spec`, then :mod:`site`.
"""

from gossamer.simweb.server import Serving, beside, run, serve
from gossamer.simweb.site import SimWeb
from gossamer.simweb.spec import ServeOptions, SpecError, WebSpec

__all__ = ["ServeOptions", "Serving", "SimWeb", "SpecError", "WebSpec", "beside", "run", "serve"]
